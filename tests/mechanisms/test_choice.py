"""The choice among candidates: its risk is unbiased, equal cells give equal splits, and the better candidate wins."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.estimators.by_name import scoring_of
from uldp.mechanisms.estimators.choice import Candidate, chosen, compared, part_of_cells, part_of_each
from uldp.mechanisms.estimators.empirical_bayes import empirical_bayes
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.families.folds.randomizer import HadamardResponse
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.inference.forecast import falling_shares
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats

K, N = 16, 600
EVERY, SOME = np.ones(K, dtype=np.bool_), np.arange(K) < 12
#: Mechanisms whose halves are exact: symbols, and independent bits.
EXACT: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(EVERY, 1.0),
    "urr": RandomizedResponse(SOME, 1.0),
    "oue": UnaryEncoding(EVERY, 1.0, OUE_THETA),
    "urap": UnaryEncoding(SOME, 1.0, OUE_THETA),
}
#: Mechanisms whose supports depend on each other.
OTHERS: dict[str, PureMechanism] = {"ss": SubsetSelection(K, 1.0), "hr": HadamardResponse(K, 1.0)}
TRUTH = falling_shares(K)
#: The halves of four splits of 101 reports with the counts 30, 20, 10 and 41.
WRITTEN = [
    [12, 12, 2, 24],
    [18, 8, 7, 17],
    [13, 11, 5, 21],
    [16, 9, 5, 20],
    [17, 9, 6, 18],
    [13, 11, 3, 23],
    [15, 9, 6, 20],
    [14, 11, 4, 21],
]


def candidates(channel: Channel) -> tuple[Candidate, ...]:
    return (
        lambda counts, n, box: empirical_bayes(channel, counts, n, box=box),
        lambda counts, n, box: wls(channel, counts, n, box),
        lambda counts, n, box: channel.unbiased(counts, n) / 2 + 1 / (2 * channel.size),
    )


def reports(mechanism: PureMechanism, rng: np.random.Generator, n: int) -> Counts:
    return mechanism.fold(mechanism.statistic(mechanism.perturb(rng.choice(K, n, p=TRUTH), rng)))


def risks(mechanism: PureMechanism, windows: int) -> tuple[Floats, Floats]:
    """Return differences of risks on held-out halves, and true losses at half of the reports; a row a window."""
    channel, rng, seeming, true = mechanism.channel, default_rng(3), [], []
    for _ in range(windows):
        counts = reports(mechanism, rng, N)
        seeming.append(compared(candidates(channel), counts, N, scoring_of(channel, counts, N))[0])
        half = reports(mechanism, rng, N // 2)[np.newaxis]
        box = scoring_of(channel, half[0], N // 2).box(half, N // 2)
        true.append([float(np.sum((fit(half, N // 2, box) - TRUTH) ** 2)) for fit in candidates(channel)])
    return np.array(seeming), np.array(true)


@pytest.mark.parametrize("name", [*EXACT, *OTHERS])
def test_the_risk_is_that_of_half_of_the_reports(name: str) -> None:
    """Within z = 4 standard errors; of sets and blocks, also within 1/(k - 1) of the noise of ``wls``."""
    seeming, true = risks((EXACT | OTHERS)[name], 200)
    apart = true - true[:, :1]
    error = np.sqrt((seeming.var(axis=0) + apart.var(axis=0)) / len(seeming))
    allowed = true[:, 1].mean() / (K - 1) if name in OTHERS else 0.0
    assert (np.abs(seeming.mean(axis=0) - apart.mean(axis=0)) <= 4 * error + allowed).all()
    # The test would see a wrong sign, or a half that has seen the other.
    assert apart[:, 1].mean() > 4 * error[1] or name in {"urap", "hr"}


@pytest.mark.parametrize("first", [0, 1])
def test_the_better_candidate_is_taken(first: int) -> None:
    channel = EXACT["oue"].channel
    counts = reports(EXACT["oue"], default_rng(1), 20_000)
    fits: list[Candidate] = [
        lambda counts, n, box: np.tile(TRUTH, (len(counts), 1)),
        lambda counts, n, box: np.full(counts.shape, 1 / K),
    ]
    order = fits if first == 0 else fits[::-1]
    assert chosen(order, counts, 20_000, scoring_of(channel, counts, 20_000)).tolist() == TRUTH.tolist()


@pytest.mark.parametrize("n", [40, 41, 10**10, 10**10 + 1])
@pytest.mark.parametrize("draw", [part_of_cells, part_of_each])
def test_halves_have_the_moments_of_a_sample(draw: Callable[..., Counts], n: int) -> None:
    """Within z = 5 of 3,000 draws: hypergeometric means and variances, and cells that sum to the sample."""
    counts, rng = np.array([n // 2, n // 4, n - n // 2 - n // 4]), default_rng(2)
    drawn = np.array([draw(counts, n, n // 2, rng) for _ in range(3000)])
    share, part = counts / n, (n // 2) / n
    variance = n * share * (1 - share) * part * (1 - part) * n / (n - 1)
    assert ((drawn >= 0) & (drawn <= counts)).all()
    assert drawn.mean(axis=0) == pytest.approx(counts * part, abs=5 * np.sqrt(variance.max() / 3000))
    assert drawn.var(axis=0) == pytest.approx(variance, rel=5 * np.sqrt(2 / 3000))
    if draw is part_of_cells:
        assert np.abs(drawn.sum(axis=1) - n // 2).max() <= (0 if n < 100 else 2)


def test_equal_cells_give_equal_splits_everywhere() -> None:
    """They are written down, so that a release of NumPy that draws others is seen."""
    seen: list[Counts] = []

    def first(counts: Counts, n: int, box: object) -> Floats:
        seen.append(counts)
        return np.full(counts.shape, 0.25)

    channel = RandomizedResponse(np.ones(4, dtype=np.bool_), 1.0).channel
    counts = np.array([30, 20, 10, 41])
    compared((first,), counts, 101, scoring_of(channel, counts, 101))
    assert seen[0].tolist() == WRITTEN
    assert (seen[0].reshape(4, 2, 4).sum(axis=1) <= counts).all()
    assert (seen[0].sum(axis=1) == 50).all()
