"""What is current in results: newest panes with their statistics, what is withheld or waits, and the total."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.pane_files import estimate_file, save_panes, statistic_file
from tests.pipelines.results.files_of_all import estimate, pane, results
from tests.pipelines.results.samples import COUNTS, ESTIMATE, at, fired, folder_of, save, write_estimate
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.collector.partial import Partial
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import Current, newest, total_accounting, waiting
from uldp.pipelines.results.text import UNPUBLISHED, unpublished_text
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.slide import slide


class TestNewest:
    def test_an_early_pane_of_a_killed_run_does_not_stand_for_the_on_time_one(self) -> None:
        on_time = fired(30, 1, kind="on_time")
        assert newest([on_time, fired(30, 7)]) == [on_time]

    def test_one_for_each_window_version_and_estimator_in_their_order(self) -> None:
        panes = [
            fired(1, 0),
            fired(1, 0, estimator="threshold"),
            fired(1, 0, start=START + HOUR),
            fired(1, 0, version=2),
        ]
        assert newest(panes[::-1]) == panes

    @given(st.permutations([(10, 0), (20, 3), (20, 0), (30, 0), (30, 2), (30, 1)]))
    def test_the_order_of_reading_does_not_matter(self, panes: list[tuple[int, int]]) -> None:
        (pane,) = newest([fired(*pane) for pane in panes])
        assert (pane.accounting.received, pane.pane.revision) == (30, 2)

    def test_an_incomplete_pane_gives_way_to_one_that_holds_as_much(self) -> None:
        stopped = replace(fired(30, 7), flags=("incomplete",))
        assert newest([stopped, fired(30, 0)]) == [fired(30, 0)]
        assert newest([stopped, fired(29, 8)]) == [stopped]


class TestCurrent:
    """Windows of which no estimate is published have none, whatever was published of them before."""

    @pytest.mark.parametrize(
        ("flags", "unpublished"), [((), False), (("improbable_payloads",), False), (("rejected_ratio",), True)]
    )
    def test_a_stopped_window(self, flags: tuple[str, ...], unpublished: bool, tmp_path: Path) -> None:
        write_estimate(tmp_path)
        later = replace(COUNTS, pane=Pane(PaneKind.LATE, 3), flags=flags)
        save_panes(tmp_path, "counts", [later])
        estimates, panes, *_ = folder_of(tmp_path).current()
        assert (len(estimates), len(panes)) == ((0, 1) if unpublished else (1, 0))

    def test_counts_alone(self, tmp_path: Path) -> None:
        few = replace(COUNTS, flags=("few_reports",))
        save_panes(tmp_path, "counts", [few])
        estimates, (pane,), *_ = folder_of(tmp_path).current()
        assert estimates == []
        assert unpublished_text(pane, UNPUBLISHED).splitlines()[:4] == [
            "c v1  2026-01-01 09:00 to 10:00 UTC  no estimate is published",
            "  n 100  pane on_time, revision 2",
            "  107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
            "  flags: few_reports",
        ]


LATER: dict[str, Any] = {"pane": Pane(PaneKind.LATE, 3), "accounting": Accounting(110, 103, 4, 2, 1)}


def write(out: Path, *files: tuple[str, bytes]) -> None:
    for name, content in files:
        write_file(str(out / name), content)


def test_the_statistic_is_that_of_the_newest_pane(tmp_path: Path) -> None:
    newer = replace(ESTIMATE, **LATER), replace(COUNTS, **LATER, cells=COUNTS.cells + 1)
    for each, statistic in ((ESTIMATE, COUNTS), newer):
        write(tmp_path, estimate_file(each), statistic_file(statistic))
    found = folder_of(tmp_path).current()
    assert found.estimates == [newer[0]]
    assert found.statistic_of(newer[0]) == newer[1]


@pytest.mark.parametrize(
    "other",
    [
        replace(COUNTS, pane=Pane(PaneKind.ON_TIME, 1)),
        replace(COUNTS, device_digest=build.DIGEST),
        replace(COUNTS, accounting=Accounting(100, 100)),
    ],
)
def test_another_statistic_is_not_taken_for_it(other: Statistic, tmp_path: Path) -> None:
    """Such as that of an earlier run, which used the revision too."""
    write(tmp_path, estimate_file(ESTIMATE), statistic_file(other))
    found = folder_of(tmp_path).current()
    assert found.estimates == [ESTIMATE]
    assert found.statistic_of(ESTIMATE) is None


def test_a_window_that_is_withheld_is_not_published_and_its_cells_are_not_held(tmp_path: Path) -> None:
    save(tmp_path, ESTIMATE, at(1))
    stopped = replace(COUNTS, accounting=Accounting(200, 100, 0, 0, 100), flags=(Flag.REJECTED_RATIO.value,))
    save_panes(tmp_path, "counts", [replace(stopped, pane=Pane(PaneKind.LATE, 9))])
    found = folder_of(tmp_path).published()
    assert [each.key for each in found] == [at(1).key]
    assert [(each.key, type(each)) for each in found.unpublished] == [(ESTIMATE.key, PaneHeader)]


def test_of_equal_panes_one_is_published(tmp_path: Path) -> None:
    """A job that ran again wrote the same pane with another one."""
    panes = [pane("c", hour) for hour in range(2)]
    one, other = map(estimate, panes)
    save_panes(results(tmp_path), "counts", panes)
    save_panes(tmp_path, "estimates", [one])
    save_panes(tmp_path, "estimates", [one, other])
    assert list(ResultsFolder(tmp_path).published()) == ResultsFolder(tmp_path).current().estimates == [one, other]


def test_a_pane_that_prune_removes_meanwhile_is_named(tmp_path: Path) -> None:
    save(tmp_path, at(0), at(1))
    found = folder_of(tmp_path).published()
    first, second = sorted((tmp_path / "estimates").rglob("*.avro"))
    second.unlink()
    assert len(found) == 2
    with pytest.raises(ResultsError, match="uldp prune removed it meanwhile; run the command again") as error:
        list(found)
    assert str(second) in str(error.value)
    assert first.exists()


SPEC = build.spec(estimator=["auto", "wls"], limits={"min_reports": 100})


def estimates(kind: str, hour: int, spec: CollectionSpec = SPEC) -> list[Estimate]:
    """The estimates of a pane of a window, one by each estimator."""
    pane = build.pane([40] * 5, kind, start=START + hour * HOUR, key=spec.key)
    return list(estimates_of(serve([spec])[spec.key], pane))


def header(hour: int, n: int, *flags: str, kind: str = "on_time") -> PaneHeader:
    return build.pane([n, 0, 0, 0, 0], kind, start=START + hour * HOUR, flags=flags)


def lines(found: Current, spec: CollectionSpec = SPEC) -> list[str]:
    return list(waiting(found, {spec.key: spec}))


def test_windows_are_counted_by_what_they_wait_for() -> None:
    few = [header(hour, 7, flag) for hour, flag in enumerate(("few_reports", "few_at_ends", "few_reports"))]
    stopped = header(3, 777, "rejected_ratio")
    early, on_time = estimates("early", 4), estimates("on_time", 5)
    held = [header(5, 207, "few_more", kind="late")]
    assert len(early) == 2
    (line,) = lines(Current([*early, *on_time], [*few, stopped], {}, held))
    assert line == (
        "c v1, windows that wait for more reports: 3 without an estimate; 1 open, whose early estimate is a step"
        " behind; 1 whose estimate leaves late reports out"
    )


def test_each_version_that_waits_has_a_line() -> None:
    other = replace(header(0, 7, "few_reports"), version=2)
    found = lines(Current([], [header(0, 7, "few_reports"), other], {}, []))
    assert [line.split(",")[0] for line in found] == ["c v1", "c v2"]
    assert lines(Current(estimates("on_time", 0), [], {}, [])) == []


@pytest.mark.parametrize("least", [1, 2])
def test_early_panes_of_a_spec_without_a_least_number_are_exact(least: int) -> None:
    spec = build.spec(limits={"min_reports": least})
    assert len(lines(Current(estimates("early", 0, spec), [], {}, []), spec)) == least - 1


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
