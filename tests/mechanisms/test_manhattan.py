"""Theorem 1 and the order of Table 1 of the ULDP paper, on the shipped check-ins: the accuracy benchmark in full."""

import numpy as np
import pytest

from benchmarks.manhattan import MECHANISMS, measure
from uldp.schemas.arrays import Floats

#: Theorem 1 itself is in ``test_pum``.
pytestmark = pytest.mark.nightly

Measured = dict[str, Floats]


@pytest.fixture(scope="module", params=MECHANISMS)
def losses(request: pytest.FixtureRequest) -> Measured:
    name: str = request.param
    return measure(name)


def test_theorem_1_bounds_every_realization(losses: Measured) -> None:
    l1, first_term, second_term, _ = np.concatenate(list(losses.values())).T
    assert (l1 <= first_term + second_term).all()


def test_better_knowledge_gives_a_better_estimate(losses: Measured) -> None:
    l1 = {knowledge: realizations[:, 0].mean() for knowledge, realizations in losses.items()}
    assert l1["I"] > l1["II"] > l1["III"]


def test_with_the_true_conditionals_only_the_loss_of_the_mechanism_is_left(losses: Measured) -> None:
    l1, first_term, second_term, _ = losses["III"].mean(axis=0)
    assert second_term == 0
    assert l1 == pytest.approx(first_term, rel=0.1)
