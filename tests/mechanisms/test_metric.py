"""Noise by distance, and the decoder of a matrix."""

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.families.metric.decoder import MatrixDecoder, em
from uldp.mechanisms.families.metric.randomizer import MOST_NATS, MetricMechanism
from uldp.mechanisms.laws.law import Outputs
from uldp.mechanisms.protocol.mechanism import Privacy
from uldp.pipelines.report.guarantee import guarantee
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag

#: (size, epsilon, columns)
CASES = [
    (2, 1.0, None),
    (7, 0.5, None),
    (7, 1e-6, None),
    (12, 1.0, 4),
    (12, 1.0, 2),
    (12, 1e-3, 3),
    (9, 19.0, 3),
    (30, 10.0, None),
    (30, 1.0, None),
]
each = pytest.mark.parametrize(("size", "epsilon", "columns"), CASES)


def distances(size: int, columns: int | None) -> Floats:
    row, column = np.divmod(np.arange(size), columns or size)
    return np.asarray(np.hypot(row[:, np.newaxis] - row, column[:, np.newaxis] - column))


def exponential(size: int, epsilon: float, columns: int | None) -> Floats:
    """The exponential mechanism: half of epsilon is for its numerators, and half for its denominators."""
    weights = np.exp(-np.minimum(epsilon * distances(size, columns), 40) / 2)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def variance(matrix: Floats) -> float:
    """The variance of an unbiased share of one report, in the mean over all values, if values are uniform."""
    r = np.full(len(matrix), 1 / len(matrix))
    return float((np.linalg.inv(matrix.T) ** 2 @ (r @ matrix) - r**2).mean())


@pytest.mark.parametrize(("size", "epsilon"), [(3, 1.0), (7, 0.5), (12, 1.2), (30, 0.05)])
def test_a_line_has_the_truncated_geometric_mechanism(size: int, epsilon: float) -> None:
    # Definition 2.1 of Ghosh, Roughgarden & Sundararajan, with what falls beyond an end at this end.
    a, d = np.exp(-epsilon), distances(size, None)
    published = (1 - a) / (1 + a) * a**d
    published[:, [0, -1]] /= 1 - a
    mechanism = MetricMechanism(size, epsilon)
    np.testing.assert_allclose(mechanism.matrix, published, rtol=1e-9)
    assert mechanism.scale == pytest.approx(epsilon, abs=1e-12)


@each
def test_noise_decays_by_one_scale(size: int, epsilon: float, columns: int | None) -> None:
    mechanism, d = MetricMechanism(size, epsilon, columns), distances(size, columns)
    weights = np.exp(-mechanism.scale / epsilon * np.minimum(epsilon * d, MOST_NATS)) * mechanism.borders(
        mechanism.scale
    )
    assert mechanism.matrix == pytest.approx(weights / weights.sum(axis=1, keepdims=True), rel=1e-9)
    assert mechanism.guarantee.epsilon == pytest.approx(min(epsilon * d.max(), MOST_NATS))
    assert mechanism.guarantee.privacy is Privacy.METRIC


def likelihood(matrix: Floats, cells: Counts, r: Floats) -> float:
    return float(cells @ np.log(r @ matrix))


def test_em_finds_no_smaller_likelihood_than_the_truth() -> None:
    rng, mechanism = np.random.default_rng(3), MetricMechanism(16, 1.0, 4)
    truth = rng.dirichlet(np.ones(16))
    cells = rng.multinomial(1_000, truth @ mechanism.matrix)
    found = em(mechanism.matrix, cells[np.newaxis], 1_000)[0]
    assert found.sum() == pytest.approx(1)
    assert found.min() >= 0
    assert likelihood(mechanism.matrix, cells, found) > likelihood(mechanism.matrix, cells, truth)
    linear = MatrixDecoder(mechanism).linear(cells, 1_000)
    assert np.abs(found - truth).sum() < np.abs(linear.values - truth).sum()


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_auto_does_not_fit_the_noise(slope: float) -> None:
    weights = np.exp(-slope * np.arange(100) / 10)
    truth = weights / weights.sum()
    rng, mechanism = np.random.default_rng(5), MetricMechanism(100, 0.5, 10)
    cells = rng.multinomial(20_000, truth @ mechanism.matrix)
    decoder = MatrixDecoder(mechanism)
    errors = {each: np.abs(decoder.tables(cells, 20_000, each)[0].values - truth).sum() for each in decoder.estimators}
    assert errors["auto"] < errors["em"] < errors["empirical"]


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 200_000), (2.0, 200_000), (2.0, 2_000_000)])
def test_auto_is_no_worse_than_empirical_where_the_signal_is_large(epsilon: float, n: int) -> None:
    """EM that stops early is too even here: it has 1.2 to 1.8 times the l1 error of ``empirical``."""
    truth = 1 / np.arange(1, 21)
    truth /= truth.sum()
    mechanism, rng = MetricMechanism(20, epsilon), np.random.default_rng(8)
    decoder, errors, law = MatrixDecoder(mechanism), [], truth @ mechanism.matrix
    for _ in range(12):
        cells = rng.multinomial(n, law / law.sum())
        stopped = em(mechanism.matrix, cells[np.newaxis], n, 19)[0]
        found = [decoder.tables(cells, n, each)[0].values for each in ("auto", "empirical")]
        errors.append([np.abs(each - truth).sum() for each in (*found, stopped)])
    of_auto, of_empirical, of_stopped = np.mean(errors, axis=0)
    assert of_auto <= 1.1 * of_empirical < of_stopped


def test_outputs_that_no_values_explain_are_improbable() -> None:
    mechanism = MetricMechanism(16, 1.0, 4)
    decoder, rng = MatrixDecoder(mechanism), np.random.default_rng(4)
    honest = mechanism.statistic(mechanism.perturb(rng.integers(0, 16, 10_000), rng))
    assert decoder.p_values(honest, 10_000)[Flag.IMPROBABLE_COUNTS] > 0.01
    assert decoder.p_values(10_000 * np.eye(16, dtype=np.int64)[3], 10_000)[Flag.IMPROBABLE_COUNTS] < 1e-9
    without_one = honest.copy()
    without_one[3], without_one[4] = 0, honest[3] + honest[4]
    assert decoder.p_values(without_one, 10_000)[Flag.IMPROBABLE_COUNTS] < 1e-6


@pytest.mark.parametrize("size", [3, 12])
def test_cumulants_are_those_of_the_outputs(size: int) -> None:
    mechanism, rng = MetricMechanism(size, 0.7), np.random.default_rng(8)
    r, w = rng.dirichlet(np.ones(size)), rng.normal(size=(size, 3))
    inverse = np.asarray(np.linalg.inv(mechanism.matrix.T), dtype=np.float64)
    law, f = Outputs(inverse, mechanism.law), r @ mechanism.matrix
    covariance = inverse @ (np.diag(f) - np.outer(f, f)) @ inverse.T
    np.testing.assert_allclose(law.times(w, r), covariance @ w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(law.sums(w, r).variance, (w * (covariance @ w)).sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(law.sums(w, r).third, f @ (inverse.T @ w - r @ w) ** 3, rtol=1e-9)
    for single, of_sum in zip(law.each(r), law.sums(np.eye(size), r), strict=True):
        np.testing.assert_allclose(single, of_sum)


def test_the_page_says_that_far_values_are_not_protected() -> None:
    text = guarantee(build.spec(domain={"size": 25}, mechanism={"name": "metric", "epsilon": 0.5, "columns": 5}))
    assert "(d-privacy, which does not protect far values from each other)" in text
    assert "epsilon 0.5 for each unit of their distance, up to 2.828 for the farthest" in text
