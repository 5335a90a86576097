"""The total of a collection has each report once, in fixed and in sliding windows."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.collector.partial import Partial
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.results.newest import total_accounting
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.slide import slide

PERIOD = HOUR // 6


def panes(slices: dict[int, Partial], size: int, period: int) -> list[Statistic]:
    """The pane of each window, as a job makes it."""
    return [
        build.pane([0], start=start, end=start + size, accounting=total.accounting)
        for start, total in slide(slices, size, period)
    ]


def received(n: int) -> Partial:
    return build.part(accounting=Accounting(received=n, counted=n, missing=3))


@given(st.dictionaries(st.integers(-9, 40), st.integers(1, 9), max_size=12), st.integers(1, 7))
def test_windows_that_overlap_have_each_report_once(slots: dict[int, int], length: int) -> None:
    slices = {slot * PERIOD: received(n) for slot, n in slots.items()}
    n = sum(slots.values())
    assert total_accounting(panes(slices, length * PERIOD, PERIOD)) == Accounting(received=n, counted=n)


@given(
    st.dictionaries(st.integers(0, 40), st.integers(1, 9), min_size=1, max_size=12),
    st.integers(2, 7),
    st.randoms(use_true_random=False),
)
def test_a_window_that_is_not_there_never_makes_the_total_larger(
    slots: dict[int, int], length: int, draw: random.Random
) -> None:
    slices = {slot * PERIOD: received(n) for slot, n in slots.items()}
    fired = panes(slices, length * PERIOD, PERIOD)
    some = [pane for pane in fired if draw.random() < 0.7]
    assert total_accounting(some).received <= sum(slots.values())


def test_one_window_that_is_not_there_is_passed_by() -> None:
    slices = {slot * PERIOD: received(1) for slot in range(20)}
    fired = panes(slices, HOUR, PERIOD)
    assert [total_accounting([*fired[:k], *fired[k + 1 :]]).received for k in range(len(fired))] == [20] * len(fired)


@pytest.mark.parametrize("window", [{"size": "1h"}, {"size": "1h", "period": "10m"}])
def test_a_job_says_how_many_reports_came(window: dict[str, str], tmp_path: Path) -> None:
    spec = build.spec(window=window)
    stream, out = LocalStream.create(tmp_path / "stream", simulated_clock=True), tmp_path / "out"
    stream.append(list(_sent()))
    local.backfill([spec], stream.path, out, local.pipeline_options([]))
    wanted = "34 received = 20 counted + 3 duplicate + 0 late + 11 rejected"
    lines = summary(out).splitlines()
    assert f"in all: {wanted}" in lines
    windows = "window" if "period" not in window else "sliding window"
    assert any(
        windows in line and "26 received = 20 counted + 3 duplicate + 0 late + 3 rejected" in line for line in lines
    )


def _sent() -> Iterator[Message]:
    """20 reports in two hours, 3 copies, 3 with an impossible symbol, and 8 messages that are no report."""
    reports = [build.report(number, number % 5, START + number * HOUR // 10) for number in range(20)]
    yield from map(build.message, [*reports, *reports[:3]])
    yield from (build.message(build.report(100 + number, 9, START)) for number in range(3))
    yield from (Message(b"no report", START) for _ in range(8))
