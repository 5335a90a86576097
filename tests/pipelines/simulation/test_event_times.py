"""Event times of a simulated fleet: rounded down to the slice, unless the spec asks for exact ones."""

from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.messages import read_back
from uldp.collector.reader import ReportReader
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.simulation.delivery import publish
from uldp.pipelines.simulation.fleet import Fleet
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.framing import report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec


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
