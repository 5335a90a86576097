"""uHR, uBD and uSS: their probabilities, enumerated, against what they promise and what the channel says of them."""

import math
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
import pytest

from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse, SubsetSelection
from uldp.mechanisms.inference.plausibility import fit_counts
from uldp.mechanisms.kernels.block_designs import CyclicDesign, HadamardDesign
from uldp.mechanisms.kernels.designs import Design, design_of, designs
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats, Mask

EPSILON = 1.5
E = math.exp(EPSILON)


def mask(v: int, size: int) -> Mask:
    """Return the sensitive symbols: not the first ones, so that symbols and points differ."""
    return np.arange(size) >= size - v


def uhr(v: int, size: int, epsilon: float = EPSILON) -> BlockResponse:
    return BlockResponse(mask(v, size), epsilon, HadamardDesign(v))


def ubd(w: int, v: int, size: int, epsilon: float = EPSILON) -> BlockResponse:
    return BlockResponse(mask(v, size), epsilon, CyclicDesign(design_of(w, v, size)))


def uss(w: int, v: int, size: int, epsilon: float = EPSILON) -> SubsetSelection:
    return SubsetSelection(size, epsilon, w, sensitive=mask(v, size))


def payloads(mechanism: PureMechanism) -> npt.NDArray[np.bool_]:
    """Return the symbols that each payload supports, shape (payloads, |Z|); that of BlockResponse are in order."""
    sensitive, own = np.flatnonzero(mechanism.sensitive), np.eye(mechanism.size, dtype=np.bool_)
    if isinstance(mechanism, SubsetSelection):
        sets = [own[list(chosen)].any(axis=0) for chosen in combinations(sensitive, mechanism.chosen)]
    else:
        assert isinstance(mechanism, BlockResponse)
        design = mechanism.design
        holds = design.over_blocks(np.eye(design.blocks)).T > 0.5
        sets = [own[sensitive[block[: len(sensitive)]]].any(axis=0) for block in holds]
    return np.array([*sets, *own[~mechanism.sensitive]])


def likelihoods(mechanism: PureMechanism) -> Floats:
    """Pr(payload | symbol) from the rule of the class alone: noise, or the truth; rows are payloads."""
    assert isinstance(mechanism, SubsetSelection | BlockResponse)
    supports, noise = payloads(mechanism), mechanism.noise_probability
    truth = supports / supports.sum(axis=0)
    uniform = np.arange(len(supports)) < len(supports) - np.count_nonzero(~mechanism.sensitive)
    found: Floats = noise * (uniform / uniform.sum())[:, np.newaxis] + (1 - noise) * truth
    return found


CASES = {
    "uhr": uhr(5, 9),
    "uhr, Hadamard matrix of the least order": uhr(7, 9),
    "uhr of one symbol": uhr(1, 3),
    "uhr, all sensitive": uhr(5, 5),
    "ubd, as many points as symbols": ubd(3, 7, 9),
    "ubd, more points": ubd(4, 10, 12),
    "ubd of a field of four elements": ubd(5, 18, 20),
    "ubd, all sensitive": ubd(3, 6, 6),
    "uss": uss(2, 6, 9),
    "uss of a small set": uss(2, 3, 5),
    "uss, all sensitive": uss(3, 7, 7),
    "uss of one symbol": uss(1, 4, 9),
    "ubd of single points": ubd(1, 4, 9),
}
each = pytest.mark.parametrize("mechanism", CASES.values(), ids=CASES)
blocks = pytest.mark.parametrize(
    "mechanism", [case for case in CASES.values() if isinstance(case, BlockResponse)], ids=lambda case: str(case.size)
)


def shares(size: int) -> Floats:
    weights = 1.0 / np.arange(1, size + 1)
    weights[1] = 0
    return np.random.default_rng(1).permutation(weights / weights.sum())


@each
def test_the_channel_has_the_enumerated_probabilities(mechanism: PureMechanism) -> None:
    S, channel = mechanism.sensitive, mechanism.channel
    assert channel.q_non_sensitive is not None
    support = payloads(mechanism).T @ likelihoods(mechanism)  # rows are supported symbols, columns true ones
    assert np.diag(support) == pytest.approx(channel.p, rel=1e-12)
    other = ~np.eye(mechanism.size, dtype=np.bool_)
    wanted = np.where(S, channel.q[:, np.newaxis], channel.q_non_sensitive[:, np.newaxis])
    wanted = np.where(S[:, np.newaxis], wanted, 0.0)
    assert support[other] == pytest.approx(wanted[other], rel=1e-12, abs=1e-16)


@each
def test_moments_are_those_of_the_enumerated_reports(mechanism: PureMechanism) -> None:
    channel, supports, r = mechanism.channel, payloads(mechanism).astype(float), shares(mechanism.size)
    law = likelihoods(mechanism) @ r
    assert channel.support_probability(r) == pytest.approx(supports.T @ law, rel=1e-12)
    # One report at a time, so that a count is 0 or 1.
    estimates = np.array([channel.unbiased(each.astype(np.int64), 1) for each in supports])
    assert estimates.T @ law == pytest.approx(r, abs=1e-12)
    covariance = (estimates.T * law) @ estimates - np.outer(r, r)
    assert channel.covariance(r)(np.eye(mechanism.size)) == pytest.approx(covariance, abs=1e-11)
    assert channel.variance(r, 1) == pytest.approx(np.diag(covariance), rel=1e-9, abs=1e-12)
    of_values = np.array(
        [(estimates**2).T @ column - (estimates.T @ column) ** 2 for column in likelihoods(mechanism).T]
    )
    assert channel.variance_given_values(r, 1) == pytest.approx(r @ of_values, rel=1e-9, abs=1e-12)


@blocks
def test_the_law_of_the_cells_is_the_enumerated_one(mechanism: BlockResponse) -> None:
    r = shares(mechanism.size)
    assert mechanism.blocks.law(r) == pytest.approx(likelihoods(mechanism) @ r, rel=1e-12)
    assert np.rint(mechanism.blocks.supported(np.eye(mechanism.size))).tolist() == payloads(mechanism).tolist()


def test_possible_sets_are_w_sensitive_symbols_or_another_one() -> None:
    mechanism = uss(2, 6, 9)
    every = np.array(list(product(range(256), repeat=2)), dtype=np.uint8)
    wanted = sorted(np.packbits(payloads(mechanism), axis=1).tolist())
    assert every[mechanism.possible(every)].tolist() == wanted


def test_uhr_is_estimated_from_columns() -> None:
    """With c = (E+1)/(E-1): R_S = c (F_P - 2/(E+1)), r_i = 2c (F_i - 1/(E+1)) - R_S and r_x = c f_x."""
    mechanism, n = uhr(5, 9), 10_000
    cells = mechanism.statistic(mechanism.perturb(np.random.default_rng(3).integers(0, 9, n), np.random.default_rng(4)))
    c, columns, named = (E + 1) / (E - 1), cells[:8] / n, cells[8:] / n
    hadamard = np.array([[(-1) ** (i & j).bit_count() for j in range(8)] for i in range(1, 6)])
    R_S = c * (columns.sum() - 2 / (E + 1))
    r_i = 2 * c * ((hadamard > 0) @ columns - 1 / (E + 1)) - R_S
    estimate = mechanism.channel.unbiased(mechanism.blocks.fold(cells), n)
    assert estimate == pytest.approx(np.append(c * named, r_i), abs=1e-12)


@pytest.mark.parametrize("design", designs(20, 50), ids=str)
def test_each_two_points_of_a_design_are_in_as_many_blocks(design: Design) -> None:
    D, V = CyclicDesign(design).set, design.points
    differences = np.bincount(((D[:, np.newaxis] - D) % V).ravel(), minlength=V)
    assert len(D) == design.block
    assert (differences[1:] == design.pairs).all()


@pytest.mark.parametrize("design", [HadamardDesign(60_000), CyclicDesign(design_of(32767, 60_000, 60_000))])
def test_sums_of_the_most_reports_are_exact(design: HadamardDesign | CyclicDesign) -> None:
    rng = np.random.default_rng(5)
    counts: Counts = rng.integers(0, 1 << 23, design.blocks)
    counts[7] = 1 << 40
    found = design.sums(counts)
    for point in (0, 1, 59_999):
        drawn = np.arange(design.draws)
        holding = np.unique(design.holding_block(np.full(design.draws, point), drawn))
        assert len(holding) == design.holding
        assert found[point] == counts[holding].sum()


@pytest.mark.parametrize("mechanism", [uhr(20, 40, 1.0), ubd(6, 31, 40, 1.0)], ids=["uhr", "ubd"])
def test_honest_windows_are_seldom_improbable_and_forged_ones_are(mechanism: BlockResponse) -> None:
    n, rng = 20_000, np.random.default_rng(6)
    r = np.where(np.arange(40) % 3 == 0, 1 / 14, 0.0)
    windows = rng.multinomial(n, mechanism.blocks.law(r), size=60)
    fits = [fit_counts(mechanism.channel, mechanism.blocks.fold(cells), n) for cells in windows]
    p = np.array([fit.p_value for fit in fits if fit is not None])
    assert len(p) == 60
    assert np.count_nonzero(p <= 0.05) <= 3 + 5 * math.sqrt(3)
    # Each forger sends a block with the last symbol, always the same one.
    cells = windows[0].copy()
    cells[mechanism.design.holding_block(np.array([mechanism.sensitive.sum() - 1]), np.array([0]))] += n // 5
    fit = fit_counts(mechanism.channel, mechanism.blocks.fold(cells), n + n // 5)
    assert fit is not None
    assert fit.p_value < 1e-6
