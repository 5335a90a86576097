"""Reports that name the slice of their event time alone: what the collector knows of clocks, and which it counts."""

import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.collector.collections import AMENDABLE_FOR
from uldp.collector.reader import Decoded, ReportReader
from uldp.mechanisms.devices.device import Device
from uldp.schemas.pane import SKEW_RANGES, Signals
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds

SPEC = build.spec(
    window={"size": "1h", "allowed_lateness": "1h"}, limits={"max_clock_skew": "5m", "max_age": "2h"}, sensitive=[0]
)


def decode(observed: int, published: int, spec: CollectionSpec = SPEC) -> Decoded:
    """Decode a report of a device that observes something at one time, and whose report arrives at another."""
    message = Message(Device(spec, {}).report(3, observed), published)
    return ReportReader([spec], judge_lateness=True).decode([message])


@pytest.mark.parametrize(
    ("published", "doublings"),
    [(START, 0), (START + HOUR - 1, 0), (START + HOUR + 15 * MINUTE - 1, 10), (START - 4 * MINUTE, SKEW_RANGES + 8)],
)
def test_a_clock_is_wrong_by_the_distance_of_the_slice(published: int, doublings: int) -> None:
    (columns,) = decode(START + 30 * MINUTE, published).columns
    assert columns.signals.tolist() == [doublings]


def test_a_slice_that_is_far_ahead_is_rejected() -> None:
    decoded = decode(START + HOUR, START + 54 * MINUTE)
    (partial,) = decoded.partials.values()
    assert decoded.rejected_reports == 1
    assert partial.signals(START) == Signals(early=(*[0] * 9, 1))


@pytest.mark.parametrize("observed", [START, START + HOUR - 1])
def test_limits_count_whatever_a_window_counts(observed: int) -> None:
    # Rounding makes a report up to an hour older, and max_age is the least that a spec may have.
    assert len(decode(observed, START + 2 * HOUR - 1).columns) == 1
    assert decode(observed, START + 2 * HOUR).late_reports == 1


@pytest.mark.parametrize(("before", "slot"), [(1, START), (0, START + 2 * HOUR + milliseconds(AMENDABLE_FOR))])
def test_a_late_report_is_accounted_to_its_window_as_long_as_that_has_state(before: int, slot: int) -> None:
    # With an hour of lateness, the window closes two hours after its start, and can be amended from then on.
    spec = build.spec(window={"size": "1h", "allowed_lateness": "1h"})
    decoded = decode(START, START + 2 * HOUR + milliseconds(AMENDABLE_FOR) - before, spec)
    (partial,) = decoded.partials.values()
    assert partial.slots.tolist() == [slot]
