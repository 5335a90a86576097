"""What a tree publishes: each candidate and their mixture, against matrices, SciPy's solvers, and devices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, default_rng
from scipy.optimize import isotonic_regression, minimize

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.estimators.choice import seed_of
from uldp.mechanisms.estimators.ordered import (
    Fit,
    by_blocks,
    candidates,
    cosine_noise,
    into_box,
    least_risk,
    monotone,
    ordered_shares,
    risk,
    smooth,
)
from uldp.mechanisms.families.tree.decoder import TreeDecoder
from uldp.mechanisms.families.tree.linear import halves
from uldp.mechanisms.pooling.tree import Tree, widths_of
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import TableName

N = 4_000
seeds = st.integers(0, 999)


def tree(bins: int = 48, epsilon: float = 1.0) -> tuple[LdpProtocol, TreeDecoder]:
    """A tree of a number, and its decoder."""
    mechanism = {"name": "tree", "epsilon": epsilon, "bins": bins}
    protocol = build_protocol(build.spec(domain={"number": {"low": 0, "high": 1}}, mechanism=mechanism))
    assert isinstance(protocol.decoder, TreeDecoder)
    return protocol, protocol.decoder


def window(protocol: LdpProtocol, rng: Generator, n: int = N) -> Counts:
    """The counts of n devices, with numbers of Beta(2, 5)."""
    payloads = protocol.perturb([Held(rng.beta(2, 5, n), np.full(n, -1))], rng)
    return as_dense(protocol.mechanism.tally([payloads], np.zeros(n, np.int64), 1)[0])


def on_simplex(objective: Any, start: Floats, bounds: list[tuple[float, float]]) -> Floats:
    """Minimize over shares within bounds, by sequential quadratic programs."""
    whole = {"type": "eq", "fun": lambda x: x.sum() - 1}
    found = minimize(objective, start, bounds=bounds, constraints=whole, options={"ftol": 1e-15, "maxiter": 1_000})
    assert found.success
    return np.asarray(found.x)


def rows_of_cosines(m: int) -> Floats:
    """The rows of the orthonormal cosine transform."""
    rows = np.cos(np.pi * np.outer(np.arange(m), np.arange(m) + 0.5) / m)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@given(st.integers(2, 7), seeds)
def test_a_monotone_fit_is_nearest_below_edges(m: int, seed: int) -> None:
    values = default_rng(seed).normal(1 / m, 0.4, m)
    values += (1 - values.sum()) / m
    found = monotone(values)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)

    def distance(x: Floats) -> float:
        return float((np.cumsum(x - values)[:-1] ** 2).sum())

    slow = on_simplex(distance, np.full(m, 1 / m), [(0, 1)] * m)
    assert distance(found) == pytest.approx(distance(slow), rel=1e-5, abs=1e-8)
    wide = default_rng(seed).normal(1 / 300, 0.1, 300)
    exact = isotonic_regression(np.cumsum(wide)[:-1]).x.clip(0, 1)
    assert np.cumsum(monotone(wide))[:-1] == pytest.approx(exact)


@given(st.integers(3, 12), seeds)
def test_smooth_shares_minimize_a_penalty_that_has_the_least_risk(m: int, seed: int) -> None:
    rng, rows = default_rng(seed), rows_of_cosines(m)
    noise = np.append(0.0, rng.uniform(0.1, 1, m - 1))
    values = rng.normal(1, 1, m)
    # Differences of differences; an end is its own neighbour.
    ends = np.eye(m)[[0, *range(m), m - 1]]
    differences, below = np.diff(ends, 2, axis=0), np.tri(m)[:-1]
    precision = rows[1:].T @ (rows[1:] / noise[1:, np.newaxis])
    whole = 1e9 * np.ones((m, m))  # the sum is known
    fits, risks = [], []
    for halved in range(1, m):
        strength = 1 / (((differences @ rows[halved]) ** 2).sum() * noise[halved])
        linear = np.linalg.solve(precision + whole + strength * differences.T @ differences, precision + whole)
        covariance = rows.T @ (noise[:, np.newaxis] * rows)
        fits.append(linear @ values)
        moved = below @ (fits[-1] - values)
        risks.append(moved @ moved + 2 * np.trace(below @ linear @ covariance @ below.T))
    assert rows.T @ smooth(rows @ values, noise) == pytest.approx(fits[int(np.argmin(risks))], abs=1e-5)


def test_waves_are_shrunk_in_blocks_of_2_2_and_3_and_the_longest_stay() -> None:
    waves = np.array([9.0, 0.1, 0.1, 2.0, 1.0, 0.5, 0.5, 3.0, 0.0, 4.0])
    noise = np.array([0.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 1.0])
    # 1 - 1/5; 1 - 2/.5 is below 0; 1 - 5/25.
    assert by_blocks(waves, noise) == pytest.approx([9.0, 0.1, 0.1, 1.6, 0.8, 0.0, 0.0, 2.4, 0.0, 3.2])
    assert by_blocks(np.zeros(5), np.ones(5)).tolist() == [0.0] * 5


@pytest.mark.parametrize(
    ("leaves", "branching"), [(16, 4), (64, 4), (256, 4), (81, 3), (200, 4), (250, 4), (24, 3), (90, 2), (5, 4)]
)
def test_the_variances_of_waves_are_those_of_least_squares(leaves: int, branching: int) -> None:
    widths = widths_of(leaves, branching)
    weights = default_rng(leaves).uniform(0.5, 20, len(widths))
    rows = rows_of_cosines(leaves)
    exact = np.einsum("ij,ji->i", rows, Tree(leaves, widths).solve(weights)(rows.T))
    found = cosine_noise(leaves, widths, weights.tolist())
    assert found[0] == 0
    assert found.sum() == pytest.approx(exact[1:].sum(), rel=0.04)
    # Where blocks are full, all waves but those that are 0 in the middle of each block of a level.
    if leaves == widths[0] * branching:
        blocks = leaves // np.array(widths[:-1])
        other = (np.arange(leaves)[:, np.newaxis] % (2 * blocks) != blocks).all(axis=1)
        assert found[other][1:] == pytest.approx(exact[other][1:])


@given(seeds)
def test_the_mixture_has_the_least_risk_of_all_pairs(seed: int) -> None:
    rng = default_rng(seed)
    fits = rng.normal(size=(3, 5))
    gram, linear = fits @ fits.T, rng.normal(size=3)
    weights = least_risk(gram, linear)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).sum() <= 2
    steps = np.linspace(0, 1, 1001)
    grid = [np.insert(np.stack([steps, 1 - steps]), left_out, 0, axis=0) for left_out in range(3)]
    risks = [((w * (gram @ w)).sum(axis=0) - 2 * linear @ w).min() for w in grid]
    assert weights @ gram @ weights - 2 * weights @ linear == pytest.approx(min(risks), abs=1e-4)


@given(st.integers(2, 6), seeds)
def test_shares_in_a_box_are_nearest_in_proportion(m: int, seed: int) -> None:
    rng = default_rng(seed)
    shares, inside = rng.dirichlet(np.ones(m), 2)
    low, high = inside * rng.random(m), inside + rng.random(m) * (1 - inside)
    found = into_box(shares, low, high)
    assert found.sum() == pytest.approx(1)
    assert (low - 1e-9 <= found).all()
    assert (found <= high + 1e-9).all()

    def divergence(x: Floats) -> float:
        # Of Kullback and Leibler; at 0, its limit.
        return float((x * np.log(np.maximum(x, 1e-300) / shares)).sum())

    slow = on_simplex(divergence, inside, list(zip(low, high, strict=True)))
    assert divergence(found) == pytest.approx(divergence(slow), abs=1e-6)
    assert into_box(shares, np.zeros(m), np.ones(m)) is shares


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_risk_of_fits_to_half_of_the_reports_is_unbiased(epsilon: float) -> None:
    """Over 300 windows, the mean difference from the errors that are is within 4 of its standard errors.

    At epsilon 4, all levels are of randomized response, and the risks themselves are unbiased. At 1, that of bins is of
    projective geometry, whose counts are thinned alone, and the differences of risks are, by which fits are mixed.
    """
    protocol, decoder = tree(24, epsilon)
    rng, edges = default_rng(8), np.linspace(0, 1, 25)
    below = np.cumsum(np.histogram(default_rng(2).beta(2, 5, 2_000_000), edges)[0] / 2_000_000)
    linear = decoder.linear(window(protocol, rng), N)
    assert [part.channel.one_symbol for part in linear.estimates] == [True, True, epsilon > 2]

    def product(x: Floats, y: Floats) -> float:
        """That of errors below edges 1 to 24, in the metric of the risk; of 0 to 24, there are 25."""
        return float(x @ y - x.sum() * y.sum() / 50)

    differences, errors = [], []
    for _ in range(300):
        one, other = halves(decoder.linear(window(protocol, rng), N), rng)
        fits = candidates(one)
        gram, linear_part = risk(fits, other.values)
        off = [np.cumsum(each) - below for each in fits]
        errors.append([product(each, each) for each in off])
        # The last term is the same for all fits, has the mean 0, and takes away most of the variance.
        noise = 2 * product(below, np.cumsum(other.values) - below)
        differences.append(np.diag(gram) - 2 * linear_part + product(below, below) + noise - errors[-1])
    found = np.array(differences)
    if epsilon < 2:
        found = found[:, 1:] - found[:, :1]
    deviation = found.std(axis=0) / np.sqrt(len(found))
    assert np.abs(found.mean(axis=0) / deviation).max() < 4
    assert (deviation < 0.1 * np.mean(errors)).all()  # so a bias of half of the risk is found


def test_equal_counts_have_equal_estimates_within_their_simultaneous_intervals() -> None:
    protocol, decoder = tree()
    cells = window(protocol, default_rng(1))
    (shares, *_), (again, *_) = decoder.tables(cells, N, "auto"), tree()[1].tables(cells.copy(), N, "auto")
    assert shares.name == TableName.SHARE
    assert shares.values.tolist() == again.values.tolist()
    assert shares.values.min() >= 0
    assert shares.values.sum() == pytest.approx(1)
    low, high = decoder.linear(cells, N).interval(1 - 0.05 / 48)
    assert ((low - 1e-9 <= shares.values) & (shares.values <= high + 1e-9)).all()
    assert seed_of(cells) != seed_of(cells[::-1])


def test_reports_that_cannot_be_divided_have_the_nearest_shares() -> None:
    values = np.array([0.6, 0.5, -0.1])
    fit = Fit(values, np.array([0.55, 0.45, 0.0]), np.array([0.0, 1.0, 1.0]))
    assert ordered_shares(fit, None, 1).tolist() == [0.55, 0.45, 0.0]
    protocol, decoder = tree()
    cells = window(protocol, default_rng(0), 6)
    linear = decoder.linear(cells, 6)
    assert min(part.reports for part in linear.parts) == 1
    assert decoder.tables(cells, 6, "auto")[0].values == pytest.approx(linear.nearest)
