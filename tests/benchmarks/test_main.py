"""The command of the benchmarks: its table, its figure, and the guard."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as main
from benchmarks import guard, rejects, sliding
from benchmarks.guard import KERNEL_MARGINS, MARGINS, Margin
from benchmarks.rows import Row
from benchmarks.throughput import MEASUREMENTS, Measured, Measurement
from uldp.collector.reader import ReportReader
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.transforms.io.message_files import read_messages

ROWS = [
    Row("a", "one", 1000, 0.5, naive=2.0, megabytes=100.0),
    Row("a", "two", 1, 0.001),
    Row("b", "three", 10, None, remark="not installed"),
]


class Part:
    """A part of the benchmark."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self.quick: bool | None = None

    def rows(self, *, quick: bool) -> Iterator[Row]:
        self.quick = quick
        yield from self._rows


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> tuple[Part, Part]:
    first, second = Part(ROWS[:2]), Part(ROWS[2:])
    monkeypatch.setattr(main, "PARTS", {"a": first.rows, "b": second.rows})
    return first, second


@pytest.mark.parametrize("quick", [False, True])
def test_all_parts_make_one_table_and_one_figure(
    quick: bool, parts: tuple[Part, Part], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "bench"
    monkeypatch.setattr(sys, "argv", ["bench", "--out", str(out), *(["--quick"] if quick else [])])
    assert main.main() == 0
    assert [part.quick for part in parts] == [quick, quick]
    lines = (out / "bench.md").read_text(encoding="utf-8").splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == ["one", "two", "three"]
    assert (out / "bench.png").read_bytes().startswith(b"\x89PNG")


def without_other_margins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out all margins but those of graphs, and their measurements."""
    for of in ("KERNEL", "RESTART", "SLIDING", "REJECT"):
        monkeypatch.setattr(guard, f"{of}_MARGINS", [])
        monkeypatch.setattr(guard, f"{of.lower()}_rates", dict)


@pytest.mark.parametrize(("slow", "code", "verdict"), [(4.0, 0, "ok"), (5.1, 1, "TOO SLOW")])
def test_the_guard_fails_below_a_margin(
    slow: float, code: int, verdict: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "MARGINS", [Margin("symbols", "bits", 2), Margin("bits", "bits", 1)])
    without_other_margins(monkeypatch)
    measured = {"symbols": Measured(10, 1), "bits": Measured(1, 1 / slow)}
    monkeypatch.setattr(guard, "measure", lambda *_: measured)
    monkeypatch.setattr(sys, "argv", ["bench", "--guard"])
    assert main.main() == code
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{verdict}: symbols / bits = {10 / slow:.2f}, must be 2 or more"
    assert second.startswith("ok: bits / bits = 1.00")


def test_a_margin_that_one_turn_misses_is_judged_by_medians_of_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MARGINS", [Margin("symbols", "bits", 2), Margin("uRR batches", "symbols", 2)])
    without_other_margins(monkeypatch)
    asked: list[tuple[set[str], int]] = []

    def measure(measurements: list[Measurement], _: float, repeat: int) -> dict[str, Measured]:
        asked.append(({measurement.label for measurement in measurements}, repeat))
        rates = {"symbols": 6.0, "bits": 5.0 if repeat == 1 else 2.0, "uRR batches": 100.0}
        return {label: Measured(int(rates[label]), 1) for label in asked[-1][0]}

    monkeypatch.setattr(guard, "measure", measure)
    assert [kept for kept, _ in guard.guard()] == [True, True]
    assert asked == [({"symbols", "bits", "uRR batches"}, 1), ({"symbols", "bits"}, guard.REPEAT)]


def test_the_guard_measures_no_more_than_its_margins_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(measurements: list[Measurement], *_: float) -> dict[str, Measured]:
        asked.extend(measurement.label for measurement in measurements)
        return dict.fromkeys(asked, Measured(1, 1))

    monkeypatch.setattr(guard, "measure", measure)
    without_other_margins(monkeypatch)
    list(guard.guard())
    assert set(asked) == {label for margin in MARGINS for label in (margin.fast, margin.slow)}
    assert len(asked) < len(MEASUREMENTS)


def test_a_kernel_and_the_plain_way_are_both_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "KERNEL_REPEAT", 1)
    assert set(guard.kernel_rates()) == {name for margin in KERNEL_MARGINS for name in (margin.fast, margin.slow)}


def test_the_guard_compares_sliding_windows_with_fixed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "SLIDING_SEGMENTS", sliding.WARM + 3)
    monkeypatch.setattr(guard, "REPEAT", 1)
    rates = guard.sliding_rates()
    assert set(rates) == {name for margin in guard.SLIDING_MARGINS for name in (margin.fast, margin.slow)}
    assert min(rates.values()) > 0


def test_what_is_rejected_is_measured_against_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def backfill(source: Path) -> float:
        sizes.append(sum(1 for path in source.glob("0*.avro") for _ in read_messages(path)))
        return 2.0 + sizes[-1] * (10 if source.name.startswith(Reason.TOO_EARLY) else 1)

    monkeypatch.setattr(rejects, "backfill", backfill)
    monkeypatch.setattr(guard, "REJECTS", 3)
    assert guard.reject_rates() == pytest.approx({"counted": 1, Reason.TOO_EARLY: 0.1})
    assert {*sizes} == {3, 3 + 3 * rejects.COUNTED_MORE, 3 + 3 * rejects.MORE}


@pytest.mark.parametrize("reason", rejects.MAKERS)
def test_the_messages_of_a_reason_are_rejected_for_it(reason: str) -> None:
    rng = np.random.default_rng(1)
    messages = [Message(rejects.MAKERS[reason](n, rng.bytes(24)), rejects.START + rejects.HOUR) for n in range(200)]
    assert {each.reason for each in ReportReader(rejects.SPECS, judge_lateness=False).decode(messages).rejected} == {
        reason
    }
