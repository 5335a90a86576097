"""The key ``event_time``: what a device sends of the time of its observation."""

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.mechanisms.devices.device import Device
from uldp.schemas.framing import report_store
from uldp.schemas.specs.specfile import SpecError

MIDNIGHT = START - 9 * HOUR


@pytest.mark.parametrize(
    ("window", "time", "expected"),
    [
        ({"size": "1h"}, START + 59 * MINUTE, START),
        ({"size": "1h"}, START, START),
        ({"size": "1h"}, START - 1, START - HOUR),
        ({"size": "1d"}, START, MIDNIGHT),
        ({"size": "1d", "period": "3h"}, START + 119 * MINUTE, START),
        ({"size": "1h"}, -1, -HOUR),
    ],
)
def test_devices_round_down_to_the_slice(window: dict[str, str], time: int, expected: int) -> None:
    spec = build.spec(window=window)
    assert spec.sent_time(time) == expected
    assert spec.sent_time(np.array([time, time])).tolist() == [expected] * 2
    assert report_store().decode(Device(spec, {}).report(3, time))[1]["event_time"] == expected


def test_the_exact_time_leaves_only_if_the_spec_asks() -> None:
    spec = build.spec(event_time="exact")
    assert report_store().decode(Device(spec, {}).report(3, START + 1))[1]["event_time"] == START + 1


def test_other_words_are_refused() -> None:
    with pytest.raises(SpecError, match=r"event_time: must be one of 'slice' or 'exact' \(got 'hour'\)"):
        build.spec(event_time="hour")
