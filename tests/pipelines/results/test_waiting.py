"""How many windows wait for more reports is said, and not with how many reports they wait."""

from dataclasses import replace

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.pipelines.results.newest import Current, waiting
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionSpec

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
