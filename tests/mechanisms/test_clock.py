"""Which times a ledger believes, by clocks that the tests set: observations, jumps of the clock, restarts."""

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.devices.clock import ClockError, Start, SystemClock, Uptime, checked_start
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.schemas.errors import UldpError

DAY = 24 * HOUR
SPEC = build.spec(mechanism={"name": "rr", "epsilon": 1.0}, budget={"epsilon": 4, "every": "30d"})


@dataclass
class SetClock:
    """A clock that a test sets, and the time that passes in truth."""

    ahead: int = 0
    passed: int = 0
    boot: str | None = "first"
    booted: int = 0

    def now(self) -> int:
        return START + self.passed + self.ahead

    def uptime(self) -> Uptime | None:
        return None if self.boot is None else Uptime(self.boot, self.passed - self.booted)


def reports(path: Path, clock: SetClock, off: int = 0, skew: timedelta | None = timedelta(hours=1)) -> int:
    """Report until a device that has just started refuses for want of budget, and return how often."""
    device, made = Device(SPEC, {}, ledger=FileLedger(path, skew=skew, clock=clock)), 0
    with suppress(BudgetExceededError):
        for made in range(10):  # noqa: B007
            device.report(1, clock.now() + off)
    return made


@pytest.mark.parametrize("off", [31 * DAY, 62 * DAY, -31 * DAY, HOUR + 1, -HOUR - 1, 10**17, -START // 1000 * 999])
def test_times_of_observations_buy_no_budget(off: int, tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    with pytest.raises(ClockError, match=r"^the time of the observation is [\d,]+ s (ahead of|behind) .*skew=None"):
        reports(path, clock, off)
    assert not path.exists()
    assert reports(path, clock) == 4
    with pytest.raises(ClockError):
        reports(path, clock, off)


@pytest.mark.parametrize("off", [HOUR, -HOUR])
def test_times_within_the_skew_are_believed(off: int, tmp_path: Path) -> None:
    assert reports(tmp_path / "ledger.json", SetClock(), off) == 4


def test_a_clock_that_is_set_ahead_buys_no_budget(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock) == 4
    before = path.read_bytes()
    for days in (31, 62):
        clock.ahead = days * DAY
        with pytest.raises(ClockError, match=rf"come {days * 86_400:,} s further than the time .*restart the machine"):
            reports(path, clock)
    assert path.read_bytes() == before
    clock.ahead, clock.passed = 0, 30 * DAY
    assert reports(path, clock) == 4


def test_small_jumps_do_not_add_up(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock) == 4
    clock.ahead = HOUR
    assert reports(path, clock) == 0
    clock.ahead = 2 * HOUR
    with pytest.raises(ClockError):
        reports(path, clock)


def test_a_clock_that_was_ahead_when_the_machine_started_is_not_the_measure(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(ahead=62 * DAY)
    Device(SPEC, {}, ledger=FileLedger(path, clock=clock)).report(1, clock.now())
    clock.ahead = 0
    assert reports(path, clock) == 3  # the clock is set back, which frees nothing
    clock.ahead = 62 * DAY
    with pytest.raises(ClockError):
        reports(path, clock)


def test_a_restart_of_the_machine_begins_anew(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(ahead=-10 * DAY)
    assert reports(path, clock) == 4
    clock.ahead = 0
    with pytest.raises(ClockError):
        reports(path, clock)
    clock.boot, clock.booted, clock.passed = "second", HOUR, HOUR
    assert reports(path, clock) == 0
    assert json.loads(path.read_bytes())["start"] == ["first", START - 10 * DAY]  # a refusal writes nothing
    clock.passed += 30 * DAY
    assert reports(path, clock) == 4
    assert json.loads(path.read_bytes())["start"] == ["second", START + HOUR]


def test_a_machine_that_names_no_runs_is_believed(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(boot=None)
    assert reports(path, clock) == 4
    clock.ahead = 31 * DAY
    assert reports(path, clock) == 4
    assert json.loads(path.read_bytes())["start"] is None


def test_a_caller_may_say_how_far_times_are_off(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock, -2 * DAY, skew=timedelta(days=2)) == 4
    with pytest.raises(ClockError):
        reports(path, clock, -2 * DAY - 1, skew=timedelta(days=2))
    assert reports(path, clock, 31 * DAY, skew=None) == 4
    with pytest.raises(ValueError, match="the skew of a ledger is negative"):
        FileLedger(path, skew=timedelta(-1))


def test_a_device_with_kept_responses_checks_too(tmp_path: Path) -> None:
    spec = build.spec(mechanism={"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0})
    device = Device(spec, {}, ledger=FileLedger(tmp_path / "ledger.json", clock=SetClock()))
    with pytest.raises(UldpError, match="ahead of the clock"):
        device.report(1, START + DAY)
    device.report(1, START)


@given(st.lists(st.tuples(st.integers(0, 10 * DAY), st.integers(-40 * DAY, 40 * DAY)), min_size=2))
def test_in_one_run_the_clock_never_comes_further_than_time_and_skew(steps: list[tuple[int, int]]) -> None:
    clock, known = SetClock(), None
    admitted: list[tuple[int, int]] = []
    for passes, ahead in steps:
        clock.passed, clock.ahead = clock.passed + passes, ahead
        with suppress(ClockError):
            known = checked_start(known, clock, clock.now(), timedelta(hours=1))
            admitted.append((clock.passed, clock.now()))
    for number, (passed, now) in enumerate(admitted):
        assert all(now - before <= passed - earlier + HOUR for earlier, before in admitted[:number])


def test_the_clock_of_this_machine() -> None:
    clock = SystemClock()
    first, now, second = clock.uptime(), clock.now(), clock.uptime()
    assert now > START
    assert (first is None) == (sys.platform != "linux")
    if first is not None and second is not None:
        assert first.boot == second.boot != ""
        assert 0 < first.elapsed <= second.elapsed
        known = Start(first.boot, now - first.elapsed)
        assert checked_start(known, clock, now, timedelta(hours=1)) is not None
