"""Windows smoothed over time: closer to the truth than each window alone, with errors that hold."""

import numpy as np
import pytest
from numpy.random import default_rng

from benchmarks.over_time import measure, truths
from tests.build import HOUR, spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.mechanisms.questions.over_time import over_time, smooth
from uldp.schemas.errors import RequestError

TRUTHS = truths(default_rng(5))


@pytest.mark.parametrize(("truth", "most"), [("random walk of 5 %", 0.45), ("jumps", 0.4)])
def test_the_errors_are_smaller_and_the_intervals_cover(truth: str, most: float) -> None:
    found = measure(TRUTHS[truth], "oue", 1.0, 10_000, default_rng(2))
    assert found["smoother / unbiased"] < found["filter / unbiased"] < most
    assert min(found["filter coverage"], found["smoother coverage"]) > 0.92


def test_the_filter_knows_no_later_window() -> None:
    rng = default_rng(3)
    y, v, n = rng.normal(0, 1, (12, 3)), np.ones((12, 3)), np.full((12, 3), 100.0)
    whole = smooth(y, v, n, np.zeros_like(v), np.ones(12))
    part = smooth(y[:7], v[:7], n[:7], np.zeros_like(v[:7]), np.ones(7))
    assert whole.filtered[:7] == pytest.approx(part.filtered)
    assert whole.filtered_stderr[:7] == pytest.approx(part.filtered_stderr)
    assert (np.abs(whole.smoothed[:7] - part.smoothed) > 1e-6).any()


def test_noise_that_devices_keep_does_not_average_out() -> None:
    keeping = spec(domain={"size": 4}, mechanism={"name": "oue", "epsilon": 1.0, "lasting_epsilon": 1.2})
    protocol, rng = build_protocol(keeping), default_rng(4)
    mechanism, truth = protocol.mechanism, np.array([0.4, 0.3, 0.2, 0.1])
    assert isinstance(mechanism, WithMemory)
    covered = []
    for _ in range(40):
        kept = mechanism.permanent(rng.choice(4, 500, p=truth), rng)
        cells = [mechanism.statistic(mechanism.again(kept, rng)) for _ in range(12)]
        linear = [protocol.decoder.linear(of, 500) for of in cells]
        shared = [each.of_responses().variance for each in linear]
        found = over_time(linear, shared, [HOUR * t for t in range(12)])
        low, high = found.interval(0.95, causal=False)
        covered.append((low <= truth) & (truth <= high))
    assert np.mean(covered) > 0.92


def test_two_windows_are_too_few() -> None:
    protocol = build_protocol(spec())
    linear = [protocol.decoder.linear(np.ones(5, np.int64), 5)] * 2
    with pytest.raises(RequestError, match="smoothing needs 3 windows or more with counts"):
        over_time(linear, [np.zeros(5)] * 2, [0, HOUR])
