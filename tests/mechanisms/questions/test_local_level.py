"""The filter and the smoother beside the posterior of all levels at once, by linear algebra."""

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.questions.local_level import LocalLevel
from uldp.schemas.arrays import Floats

T, WIDE = 9, 1e5


def levels(gate: float = np.inf) -> LocalLevel:
    """Two numbers at nine times, one of which follows a gap, with errors that differ."""
    rng = default_rng(1)
    elapsed = np.array([1.0, 1, 1, 3, 1, 1, 2, 1, 1])
    return LocalLevel(rng.normal(0, 1, (T, 2)), rng.uniform(0.5, 2, (T, 2)), np.array([0.3, 0.0]), elapsed, gate)


def posterior(model: LocalLevel, number: int, seen: int) -> tuple[Floats, Floats]:
    """Means and variances of all levels given the first ``seen`` observations, from the dense covariance of a walk."""
    walked = model.step[number] * np.concatenate([[0.0], model.elapsed[1:]]).cumsum()
    prior = np.minimum.outer(walked, walked) + WIDE  # nothing is known of the first level
    of = prior[:, :seen]
    gain = of @ np.linalg.inv(prior[:seen, :seen] + np.diag(model.variance[:seen, number]))
    return gain @ model.observed[:seen, number], np.diag(prior - gain @ of.T)


@pytest.mark.parametrize("number", [0, 1])
def test_the_smoother_is_the_posterior_given_all_observations(number: int) -> None:
    model = levels()
    means, variances = model.smoothed
    expected, of = posterior(model, number, T)
    assert means[:, number] == pytest.approx(expected, abs=1e-4)
    assert variances[:, number] == pytest.approx(of, abs=1e-4)


def test_the_likelihood_is_that_of_all_observations_but_for_a_constant() -> None:
    model = levels()
    for number in (0, 1):
        walked = model.step[number] * np.concatenate([[0.0], model.elapsed[1:]]).cumsum()
        total = np.minimum.outer(walked, walked) + WIDE + np.diag(model.variance[:, number])
        y = model.observed[:, number]
        found = -(np.linalg.slogdet(total)[1] + y @ np.linalg.solve(total, y)) / 2
        assert model.likelihoods[:, number].sum() - np.log(WIDE) / 2 == pytest.approx(found, abs=1e-3)


def test_nothing_is_carried_across_a_jump() -> None:
    y = np.array([[0.0], [0.1], [50.0], [50.2]])
    model = LocalLevel(y, np.ones((4, 1)), np.array([0.1]), np.ones(4))
    assert model.jumps.ravel().tolist() == [False, False, True, False]
    assert model.filtered[0][2] == y[2]
    parts = [LocalLevel(part, np.ones((2, 1)), np.array([0.1]), np.ones(2)).smoothed for part in (y[:2], y[2:])]
    for found, one, other in zip(model.smoothed, *parts, strict=True):
        assert found == pytest.approx(np.concatenate([one, other]))
