"""The ledger in C decides as the one in Python does, and notices damage; the queue in C ends its rounds."""

import random
import subprocess
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients import compiled
from tests import build
from tests.build import HOUR, START
from tests.mechanisms.test_clock import SetClock
from uldp.mechanisms.devices.clock import ClockError
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger
from uldp.mechanisms.devices.spending import BudgetExceededError, Spending, admitted_at, record
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_table
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.collection import CollectionSpec

DAY = 24 * HOUR
OK, WRONG, OVER_BUDGET, REPORTED, TIME, CLOCK, DAMAGED, FULL = range(8)
SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-DNAME=c")
RR: dict[str, Any] = {"mechanism": {"name": "rr", "epsilon": 1.0}, "budget": {"epsilon": 4, "every": "30d"}}
KEPT: dict[str, Any] = {
    "mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.5},
    "budget": {"epsilon": 4, "every": "90d"},
    "window": {"size": "6h", "period": "2h"},
}
LEVELS: dict[str, Any] = {
    "mechanism": {
        "name": "levels",
        "of": {"name": "rr"},
        "levels": {
            "strict": {"epsilon": 0.5, "share": 0.3, "lasting_epsilon": 1.5},
            "open": {"epsilon": 1.0, "share": 0.7, "lasting_epsilon": 2.0},
        },
    },
    "budget": {"epsilon": 4, "every": "90d"},
}


def program(folder: Path, spec: CollectionSpec) -> str:
    (folder / "table.h").write_text("\n".join(c_table(device_table(spec), "c")) + "\n")
    return compiled(folder, "stored", *SANITIZED)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    return program(tmp_path_factory.mktemp("stored"), build.spec(**RR))


def says(program: str, lines: Iterable[str]) -> list[str]:
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


def test_spendings_follow_the_vectors_of_the_ledger_in_python(stored: str) -> None:
    draw = random.Random(7)
    spent: list[Spending] = []
    lines, wanted, now = [], [], START
    for _ in range(600):
        now += draw.choice([0, 1, 59_000, HOUR // 2, HOUR, 7 * HOUR, 3 * DAY, 40 * DAY])
        time = now + draw.choice([0, 0, 0, -HOUR, -5 * DAY, 2 * HOUR, -400 * DAY])
        epsilon = draw.choice([0.0, 0.1, 0.25, 1.0])
        budget = Budget(epsilon=draw.choice([1.0, 3.0, 9.5]), every=timedelta(days=draw.choice([1, 30, 500])))
        every = budget.every // timedelta(milliseconds=1)
        lines.append(f"admit {epsilon!r} {time} {budget.epsilon!r} {every}")
        wanted.append(str(admitted_at(spent, epsilon, time, budget)))
        spent = record(spent, epsilon, time)
        lines += [f"record {epsilon!r} {time}", "spent"]
        wanted += ["", " ".join(f"{time} {float.fromhex(epsilon.hex())!r}" for time, epsilon, _ in spent)]
    found = says(stored, lines)
    plain = [
        " ".join(repr(float.fromhex(word)) if "x" in word else word for word in line.split()) if "x" in line else line
        for line in found
    ]
    assert plain == wanted
    assert len(spent) > 100


def outcome(device: Device, value: int, time: int) -> str:
    try:
        device.report(value, time)
    except BudgetExceededError as error:
        return f"{OVER_BUDGET} {error.until}"
    except ClockError as error:
        return f"{TIME if 'of the observation' in str(error) else CLOCK} 1"
    except ValueError:
        return f"{REPORTED} 1"
    return f"{OK} 0"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("keys", [RR, KEPT, LEVELS], ids=["budget", "kept", "levels"])
def test_whatever_the_clock_does_a_ledger_decides_as_in_python(keys: dict[str, Any], seed: int, tmp_path: Path) -> None:
    spec, draw, clock = build.spec(**keys), random.Random(seed), SetClock(ahead=seed % 2 * 4000 * DAY)
    ledger = FileLedger(tmp_path / "ledger.json", clock=clock)
    levels = [*keys["mechanism"].get("levels", {"": None})]
    devices = [Device(spec, {}, ledger=ledger, level=level or None) for level in levels]
    lines, wanted = [], []
    for _ in range(250):
        clock.passed += draw.choice([0, 60_000, HOUR, 2 * HOUR, DAY, 9 * DAY])
        if draw.random() < 0.5:
            clock.ahead = draw.choice([0, 0, 0, HOUR // 2, -HOUR, 2 * HOUR, 31 * DAY, 4000 * DAY, -4000 * DAY])
        if draw.random() < 0.1:
            clock.boot, clock.booted = draw.choice(["second", "third", None]), clock.passed
        time = clock.now() + draw.choice([0, 0, 0, HOUR, -HOUR, HOUR + 1, -31 * DAY])
        part, value = draw.randrange(len(levels)), draw.randrange(spec.size)
        uptime = clock.uptime()
        boot, elapsed = ("-", 0) if uptime is None else (uptime.boot, uptime.elapsed)
        lines += [f"clock {clock.now()} {elapsed} {boot}", f"report {value} {part} {time}"]
        wanted.append(outcome(devices[part], value, time))
    lines += ["spent", "boot", "ahead"]
    *found, spent, run, seen = says(program(tmp_path, spec), lines)
    assert found == wanted
    assert {int(each.split()[0]) for each in found} >= {OK, OVER_BUDGET, TIME, CLOCK}
    with ledger.change() as content:
        assert [float.fromhex(each) for each in spent.split()[1::2]] == [each.epsilon for each in content.spent]
        assert [*map(int, spent.split()[::2])] == [each.time for each in content.spent]
        assert run.split() == [str(each) for each in content.start or ()]
        assert [*map(int, seen.split())] == [each.seen or 0 for each in content.spent]


def test_a_time_in_seconds_or_microseconds_refuses(stored: str) -> None:
    times = [0, START // 1000, 10**11 - 1, START * 1000, 1 << 63, 10**11]
    found = says(stored, [f"clock {START} 0 -", *(f"report 1 0 {time}" for time in times)])
    assert found == [*[f"{WRONG} 1"] * 5, f"{TIME} 1"]


@pytest.mark.parametrize("place", [0, 4, 5, 11, 16, 90, 135, 167, 191])
def test_a_damaged_ledger_refuses_until_somebody_restores_it(stored: str, place: int) -> None:
    report = f"report 1 0 {START}"
    lines = [f"clock {START} 0 -", report, f"flip ledger {place}", report, report, f"flip ledger {place}", report]
    assert says(stored, lines) == [f"{OK} 0", *[f"{DAMAGED} 1"] * 2, f"{OK} 0"]


def test_an_entry_in_the_place_of_another_is_noticed(stored: str) -> None:
    lines = [f"clock {START} 0 -", "add 20", "move queue ledger", f"report 1 0 {START}"]
    assert says(stored, lines) == [str(OK), f"{DAMAGED} 1"]
    lines = [f"clock {START} 0 -", f"report 1 0 {START}", "move ledger queue", "add 20", "flush 1 202 0"]
    assert says(stored, lines) == [f"{OK} 0", str(OK), "0020 | 0 1 0 0 0 0 1"]


def test_a_ledger_without_room_refuses_and_spends_nothing(stored: str) -> None:
    report = f"report 1 0 {START}"
    lines = [f"clock {START} 0 -", "room 167", report, "room 192", report, "spent", "room 191", report]
    assert says(stored, lines)[::3] == [f"{FULL} 1", f"{FULL} 1"]


def rounds(program: str, *lines: str) -> list[Sequence[str]]:
    """Return the words of what each round says."""
    return [line.split() for line in says(program, [f"clock {START} 0 -", *lines]) if "|" in line]


def test_a_round_gives_each_message_one_attempt_and_ends(stored: str) -> None:
    ((*posted, _, status, taken, refused, waiting, again, needs_you, _),) = rounds(
        stored, *["add 9"] * 5, "flush 5 202 0 500 0 422 0 413 0 408 0"
    )
    assert posted == ["009", "019", "029", "039", "049"]
    assert (status, taken, refused, waiting, needs_you) == ("0", "1", "2", "2", "0")
    assert 250 <= int(again) <= 500


def test_waits_grow_to_a_minute_and_what_a_server_asks_to_a_day(stored: str) -> None:
    lines, now = ["add 9"], START
    for _ in range(12):
        lines.append("flush 1 500 0")
        now += 60_000
        lines.append(f"clock {now} 0 -")
    *growing, last = rounds(stored, *lines, f"flush 1 503 {10**12}")
    waits = [int(each[-3]) for each in growing]
    assert all(min(500 << n, 60_000) // 2 <= wait <= min(500 << n, 60_000) for n, wait in enumerate(waits))
    assert last[-3] == str(DAY)


AHEAD = START + 5000 * DAY
TAKEN = "flush 3 202 0 202 0 202 0"
WAITS = ["flush 3 429 600 429 600 503 600", f"clock {START + 599_000} 0 -", "flush 0", f"clock {START + 600_000} 0 -"]
#: What an answer says, and whether its reason is about one message.
TEXTS = {
    '{"reason":"too_early","detail":"x"}': True,
    '{"error":{"reason":"x"},"reason":"y"}': True,
    '{"error":"{\\"reason\\":1}"}': False,
    '{"error":{"reason":"x"}}': False,
    '[{"reason":"x"}]': False,
    '"reason":1': False,
    "{}": False,
    '{"a":"' + "x" * 500 + '","reason":"y"}': False,
}
#: Lines, and how each of their rounds begins: posted | status, taken, refused, waiting, again, needs you, damaged.
ROUNDS: dict[str, tuple[list[str], list[str]]] = {
    **{
        f"{answer}, which only a person can change, ends a round": (
            [*["add 9"] * 3, f"flush 1 {answer} 0", TAKEN],
            [f"009 | 0 0 0 3 0 {answer} 0", "009 019 029 | 0 3 0 0 0 0 0"],
        )
        for answer in (401, 403, 404, 405, 301, 400, 418, 200)
    },
    **{
        f"three of {answer} in a row end a round": (
            [*["add 9"] * 5, "flush 3" + f" {answer} 0" * 3],
            ["009 019 029 | 0 0 0 5 0"],
        )
        for answer in (0, 429, 503)
    },
    "a server that asks for a wait gets it for all messages": (
        [*["add 9"] * 3, *WAITS, TAKEN],
        ["009 | 0 0 0 3 600000 0 0", "| 0 0 0 3 1000 0 0", "009 019 029 | 0 3"],
    ),
    "a message that a clock of 2038 has put off is sent": (
        ["add 9", f"clock {AHEAD} 0 -", "flush 1 503 3600", f"clock {START} 0 -", "flush 1 202 0"],
        ["009 | 0 0 0 1", "009 | 0 1 0 0"],
    ),
    **{
        f"429 with {text[:40]}": (
            [*["add 9"] * 5, f"text {text}", "flush 5 429 3600 429 3600 429 3600 202 0 202 0"],
            ["009 019 029 039 049 | 0 2 0 3 3600000 0 0" if of_message else "009 | 0 0 0 5 3600000 0 0"],
        )
        for text, of_message in TEXTS.items()
    },
    "a message for which a round has no room stops none behind it": (
        ["add 9", "add 8", "buffer 8", "flush 2 202 0 202 0"],
        [f"018 | {WRONG} 1 0 1 0 0 0"],
    ),
    **{
        f"a lease, {after} ms behind the time limit": (
            ["add 9", "add 9", f"within {after}", TAKEN],
            [f"009 [ {posted} ] | 0 1 0 0 0 0 0"],
        )
        for after, posted in ((0, "019"), (39_999, "019"), (40_000, "009 019"))
    },
}


@pytest.mark.parametrize("name", ROUNDS)
def test_each_round_posts_and_says_what_it_has_to(name: str, stored: str) -> None:
    lines, expected = ROUNDS[name]
    found = [" ".join(each) for each in rounds(stored, *lines)]
    assert [said[: len(begins)] for said, begins in zip(found, expected, strict=True)] == expected


def test_a_damaged_queue_is_set_aside_and_a_full_one_refuses(stored: str) -> None:
    found = says(stored, [f"clock {START} 0 -", "add 9", "add 9", "flip queue 60", "add 8", "flush 1 202 0"])
    assert found[-1] == "028 | 0 1 0 0 0 0 1"
    found = says(stored, [f"clock {START} 0 -", *["add 9"] * 1001, "room 10000", "add 9", "add 9000"])
    assert [*map(int, found)] == [*[OK] * 1000, FULL, FULL, FULL]
