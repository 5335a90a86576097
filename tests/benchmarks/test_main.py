"""The command of the benchmarks: its table, its figure, and the guard."""

import sys

import numpy as np
import pytest

from benchmarks import __main__ as main
from benchmarks import guard, rejects
from benchmarks.guard import Margin
from benchmarks.throughput import Measured, Measurement
from uldp.collector.reader import ReportReader
from uldp.schemas.records import Message


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


@pytest.mark.parametrize("reason", rejects.MAKERS)
def test_the_messages_of_a_reason_are_rejected_for_it(reason: str) -> None:
    rng = np.random.default_rng(1)
    messages = [Message(rejects.MAKERS[reason](n, rng.bytes(24)), rejects.START + rejects.HOUR) for n in range(200)]
    assert {each.reason for each in ReportReader(rejects.SPECS, judge_lateness=False).decode(messages).rejected} == {
        reason
    }
