"""Fleets: their settings, their summaries, and event times, which devices round down to the slice."""

import math
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.messages import read_back
from uldp.collector.reader import ReportReader
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation.delivery import publish
from uldp.pipelines.simulation.fleet import Fleet, Summary
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.framing import report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec


def make_fleet(domain: int = 4, **settings: Any) -> Fleet:
    spec = build.spec(domain={"size": domain})
    truth = Truth(build.spec(domain={"size": 4}).variables, (Held(np.arange(4), np.full(4, -1)),), np.full(4, 0.25))
    base = {"users": 10, "seed": 0, "start_ms": 0, "duration_ms": 1000}
    return Fleet(spec, truth, **(base | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"users": 0}, "users must be 1 or more, got 0"),
        ({"seed": -1}, "seed must be 0 or more, got -1"),
        ({"start_ms": -1}, "start_ms must be 0 or more, got -1"),
        ({"duration_ms": 0}, "duration_ms must be 1 or more, got 0"),
        ({"batch_size": 0}, "batch_size must be 1 or more, got 0"),
        ({"late": -0.1}, "rates must be 0 or more and sum to 1 or less, got {.*'late': -0.1"),
        ({"late": 0.5, "duplicates": 0.6}, "rates must be 0 or more and sum to 1 or less"),
        ({"malformed": math.nan}, "rates must be 0 or more and sum to 1 or less"),
        ({"domain": 5}, "the truth has another domain or other tags than the spec"),
    ],
)
def test_impossible_settings_are_errors(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_fleet(**settings)


def test_summaries_add_up() -> None:
    total = Summary(10, 2, 1, 3, 2, 1) + Summary(5, 1, 0, 1, 1, 2)
    assert total == Summary(15, 3, 1, 4, 3, 3)
    assert str(total) == (
        "15 reports, including 3 second copies, 3 damaged, 4 late within the allowed lateness and 3 later still"
    )


def sent(spec: CollectionSpec, **settings: Any) -> list[Message]:
    truth = Truth(spec.variables, (Held(np.arange(5), np.full(5, -1)),), np.full(5, 0.2))
    fleet = Fleet(spec, truth, **{"users": 300, "seed": 1, "start_ms": START, "duration_ms": 3 * HOUR} | settings)
    return [message for step in publish(fleet) for message in read_back(step.messages)]


@pytest.mark.parametrize(("period", "slices"), [({}, 3), ({"period": "30m"}, 6)])
def test_devices_send_the_beginning_of_their_slice(period: dict[str, str], slices: int) -> None:
    messages = sent(build.spec(window={"size": "1h"} | period))
    times = {report_store().decode(message.data)[1]["event_time"] for message in messages}
    assert times == {START + number * 3 * HOUR // slices for number in range(slices)}


def test_exact_times_are_all_different() -> None:
    messages = sent(build.spec(event_time="exact"))
    assert len({report_store().decode(message.data)[1]["event_time"] for message in messages}) > 290


def test_a_clock_that_is_ahead_is_rejected_also_if_windows_are_longer_than_its_error() -> None:
    # A slice of 500 days began up to 500 days ago, and the clock of a broken device is 365 days ahead.
    spec = build.spec(window={"size": "500d"})
    decoded = ReportReader([spec], judge_lateness=False).decode(sent(spec, malformed=1.0))
    reasons = {record.reason for record in decoded.rejected}
    assert decoded.rejected_reports == 300
    assert Reason.TOO_EARLY in reasons
