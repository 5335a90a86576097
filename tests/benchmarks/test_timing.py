"""The benchmark of times: its area under the curve, and that it sees a mechanism that draws more if it lies."""

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.timing import EPSILON, MECHANISMS, SIZE, area, measure
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.schemas.arrays import Values


@pytest.mark.parametrize(
    ("times", "expected"), [([1, 2, 3, 4], 1.0), ([4, 3, 2, 1], 1.0), ([1, 3, 2, 4], 0.75), ([5, 5, 5, 5], 0.5)]
)
def test_the_area_is_the_probability_that_a_time_is_above_another(times: list[int], expected: float) -> None:
    assert area(np.array(times, dtype=np.float64), np.array([False, False, True, True])) == expected


@pytest.mark.parametrize("positive", [False, True])
def test_times_of_one_group_alone_tell_nothing(positive: bool) -> None:
    assert area(np.array([1.0, 2.0, 3.0]), np.full(3, positive)) == 0.5


def test_more_draws_for_noise_are_seen() -> None:
    class Lazy(RandomizedResponse):
        def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
            if randomness.random(1)[0] >= self.noise_probability:
                return symbols.astype(np.uint32)
            return np.array(randomness.integers(0, self.size, 20_000)[:1], dtype=np.uint32)

    # Half of the reports are noise and slow, and noise supports the true symbol once in 17 times: the AUC is .97.
    assert measure(Lazy(np.ones(SIZE, dtype=np.bool_), EPSILON), 400)[0] > 0.8


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_mechanism_is_measured(name: str) -> None:
    assert all(0.5 <= found <= 1 for found in measure(MECHANISMS[name](), 40))
