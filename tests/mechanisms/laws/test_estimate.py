"""Estimates of several parts: their cumulants add up, whatever they are made of."""

from dataclasses import replace

import numpy as np
import pytest

from uldp.mechanisms.decoders.pure import ShareEstimate, share_estimate
from uldp.mechanisms.kernels.intervals import clopper_pearson
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.laws.estimate import joined, weighted

K = 4
RR = Channel(np.full(K, 0.7), np.full(K, 0.1), False)
BITS = Channel(np.full(K, 0.6), np.full(K, 0.2), True)
COUNTS = {"rr": np.array([50, 30, 15, 5]), "bits": np.array([80, 60, 50, 45])}
W = np.column_stack([np.eye(K), [1.0, 1.0, 0.0, 0.0], [0.5, -1.0, 2.0, 0.0]])


def estimate(name: str, n: int, response: Channel | None = None) -> ShareEstimate:
    """An estimate whose values have their errors where sums have theirs: at one distribution."""
    channel = RR if name == "rr" else BITS
    found = share_estimate(law_of(channel, None if response is None else law_of(response)), COUNTS[name], n)
    (part,) = found.parts
    return replace(found, parts=(replace(part, theta=part.distribution),))


def test_cumulants_of_independent_parts_add_up() -> None:
    one, other = estimate("rr", 100), estimate("bits", 200)
    found, parts = joined([one, other]).sums(np.vstack([W, W])), (one.sums(W), other.sums(W))
    assert found.variance == pytest.approx(parts[0].variance + parts[1].variance)
    assert found.third == pytest.approx(parts[0].third + parts[1].third)
    assert found.step == pytest.approx(np.maximum(parts[0].step, parts[1].step))


def test_a_difference_has_the_skewness_of_both() -> None:
    one, other = estimate("rr", 100), estimate("bits", 200)
    found, parts = one.less(other).sums(W), (one.sums(W), other.sums(W))
    assert one.less(other).values == pytest.approx(one.values - other.values)
    assert found.variance == pytest.approx(parts[0].variance + parts[1].variance)
    assert found.third == pytest.approx(parts[0].third - parts[1].third)


def test_the_product_is_the_quadratic_form_of_the_variance() -> None:
    parts = [estimate("rr", 100), estimate("bits", 200)]
    for whole in (
        parts[0],
        joined(parts).at(slice(1, 5)),
        weighted(parts, np.array([[0.3], [0.7]])),
        parts[0].repeated(3),
    ):
        assert whole.variance_of(W) == pytest.approx((W * whole.times(W)).sum(axis=0))


def test_values_of_one_part_have_its_exact_intervals() -> None:
    for n, name in ((100, "rr"), (200, "bits")):
        alone = estimate(name, n)
        low, high = clopper_pearson(COUNTS[name], n, 0.95)
        channel = alone.channel
        for found in (
            alone,
            joined([estimate("rr", 100), alone]).at(slice(K, None)),
            weighted([alone], np.ones((1, 1))),
        ):
            ends = found.interval(0.95)
            assert ends[0] == pytest.approx((low - channel.q) / channel.gain)
            assert ends[1] == pytest.approx((high - channel.q) / channel.gain)


def test_a_group_of_symbols_counts_its_reports() -> None:
    low, high = estimate("rr", 100).interval(0.95, W[:, 4:5])
    ends = clopper_pearson(80, 100, 0.95)
    assert (low, high) == pytest.approx(tuple((end - 0.2) / 0.6 for end in ends))


@pytest.mark.parametrize("repeats", [1, 4])
def test_kept_responses_have_the_cumulants_of_simulated_devices(repeats: int) -> None:
    """Devices draw one response with .9 and .033..; each report replaces it by a uniform symbol."""
    inner, rng, n, runs = Channel(np.full(K, 0.9), np.full(K, 0.1 / 3), False), np.random.default_rng(8), 400, 4000
    replaced, theta = (0.9 - 0.7) / (0.9 - 0.25), np.array([0.5, 0.3, 0.15, 0.05])
    held = rng.choice(K, (runs, n), p=theta)
    response = np.where(rng.random(held.shape) < 0.9, held, (held + rng.integers(1, K, held.shape)) % K)
    total = np.zeros((runs, K))
    for _ in range(repeats + 1):
        report = np.where(rng.random(held.shape) < replaced, rng.integers(0, K, held.shape), response)
        total += (report[:, :, np.newaxis] == np.arange(K)).sum(axis=1)
    reports = n * (repeats + 1)
    sums = RR.unbiased(total.astype(np.int64), np.full((runs, 1), reports)) @ W
    exact = share_estimate(
        law_of(RR, law_of(inner)), np.rint(reports * RR.support_probability(theta)).astype(np.int64), reports
    )
    found = exact.repeated(repeats).sums(W)
    centred = sums - sums.mean(axis=0)
    z_of_variance = (sums.var(axis=0) / found.variance - 1) / np.sqrt(2 / runs)
    third, error = (centred**3).mean(axis=0), np.sqrt((centred**6).mean(axis=0) / runs)
    assert np.abs(z_of_variance).max() < 4
    assert (np.abs(third - found.third) / error).max() < 4


def test_the_errors_of_a_difference_may_be_those_of_no_change() -> None:
    one, other = estimate("rr", 100), share_estimate(law_of(RR), np.array([5, 4, 1, 0]), 10)
    both = share_estimate(law_of(RR), one.counts + other.counts, 110)
    found = one.less(other).under(joined([both, both]))
    at_both = both.sums(np.eye(K)).variance * 110
    assert found.sums(np.eye(K)).variance == pytest.approx(at_both * (1 / 100 + 1 / 10))
