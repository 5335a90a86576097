"""HRR, linear hashing and projective geometry response: laws of their payloads, and what the fold makes of them."""

import math

import numpy as np
import pytest
from scipy import stats

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.folded_decoder import FoldedDecoder
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.kernels.block_designs import walsh_hadamard
from uldp.mechanisms.kernels.projective_space import ProjectiveSpace
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.flags import Flag

EPSILONS = (0.1, 1.0, math.log(4), 4.0)
MECHANISMS: dict[str, FoldedMechanism] = {
    **{f"hrr {k} {e:.3g}": HadamardResponse(k, e) for k in (1, 2, 5, 8) for e in EPSILONS},
    **{f"linear {k} {e:.3g}": LinearHashing(k, e) for k in (1, 2, 5, 20) for e in EPSILONS},
    **{f"pgr {k} {e:.3g}": ProjectiveGeometryResponse(k, e) for k in (1, 2, 5, 20) for e in EPSILONS},
    "linear 7, plane": LinearHashing(7, 1.0, ProjectiveSpace(3, 2)),
    "linear 20, solid": LinearHashing(20, 1.0, ProjectiveSpace(3, 3)),
    "pgr 13, plane": ProjectiveGeometryResponse(13, 1.0, ProjectiveSpace(3, 3)),
    "pgr 20, solid": ProjectiveGeometryResponse(20, 1.0, ProjectiveSpace(3, 4)),
}
each = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def digit_sum(g: int, one: int, other: int) -> int:
    total = 0
    while one and other:
        total, one, other = total + (one % g) * (other % g), one // g, other // g
    return total % g


def points(space: ProjectiveSpace) -> list[int]:
    return [x for k in range(space.m) for x in range(space.g**k, 2 * space.g**k)]


def supports(mechanism: FoldedMechanism) -> Mask:
    """Whether each payload supports each symbol, from the definition; shape (|Z|, payloads)."""
    symbols, payloads = range(mechanism.size), range(mechanism.statistic_size)
    if isinstance(mechanism, HadamardResponse):
        return np.array([[digit_sum(2, y // 2, z) == y % 2 for y in payloads] for z in symbols])
    if isinstance(mechanism, LinearHashing):
        g, functions = mechanism.space.g, points(mechanism.space)
        return np.array([[digit_sum(g, functions[y // g], z) == y % g for y in payloads] for z in symbols])
    assert isinstance(mechanism, ProjectiveGeometryResponse)
    g, of = mechanism.space.g, points(mechanism.space)
    return np.array([[digit_sum(g, of[y], of[z]) == 0 for y in payloads] for z in symbols])


def likelihoods(mechanism: FoldedMechanism) -> Floats:
    """Pr(payload | symbol): some are E times as probable as others; shape (|Z|, payloads)."""
    assert mechanism.guarantee.epsilon is not None
    odds: Floats = np.where(supports(mechanism), math.exp(mechanism.guarantee.epsilon), 1.0)
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


@each
def test_p_and_q_are_those_of_all_payloads(mechanism: FoldedMechanism) -> None:
    channel, of = mechanism.channel, likelihoods(mechanism) @ supports(mechanism).T
    wanted = np.where(np.eye(mechanism.size, dtype=np.bool_), channel.p, channel.q)
    assert of == pytest.approx(wanted, rel=1e-12)


@each
def test_the_fold_is_the_matrix_of_supports(mechanism: FoldedMechanism) -> None:
    rng, M = np.random.default_rng(1), supports(mechanism)
    cells = rng.integers(0, 1 << 36, mechanism.statistic_size)
    assert mechanism.fold(cells).tolist() == (M @ cells).tolist()
    for payload in rng.integers(0, mechanism.statistic_size, 5).tolist():
        assert mechanism.symbols_of(payload).tolist() == np.flatnonzero(M[:, payload]).tolist()
    numbers, weights = rng.normal(size=(mechanism.statistic_size, 2)), rng.normal(size=(mechanism.size, 2))
    assert mechanism.supports(numbers) == pytest.approx(M @ numbers)
    assert mechanism.supported(weights) == pytest.approx(M.T @ weights)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 4.0])
@pytest.mark.parametrize("size", [625, 10_000])
def test_the_variance_of_linear_hashes_and_points_is_that_of_olh(size: int, epsilon: float) -> None:
    olh = 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
    for mechanism in (LinearHashing(size, epsilon), ProjectiveGeometryResponse(size, epsilon)):
        assert 0.97 < mechanism.channel.variance(np.zeros(size), 1)[0] / olh < 1.04


@pytest.mark.parametrize("name", ["hrr", "linear-olh", "pgr"])
def test_a_payload_that_forgers_repeat_is_improbable(name: str) -> None:
    protocol, n = build_protocol(build.spec(domain={"size": 50}, mechanism={"name": name, "epsilon": 1.0})), 20_000
    cells = protocol.mechanism.statistic(protocol.mechanism.perturb(np.arange(n) % 7, np.random.default_rng(4)))
    assert protocol.decoder.p_values(cells, n)[Flag.IMPROBABLE_COUNTS] > 1e-3
    forged = cells.copy()
    forged[3] += 1000
    assert protocol.decoder.p_values(forged, n + 1000)[Flag.IMPROBABLE_COUNTS] < 1e-9


def test_a_space_that_would_lose_too_much_is_refused() -> None:
    spec = build.spec(domain={"size": 1_000_000}, mechanism={"name": "pgr", "epsilon": 4.0})
    with pytest.raises(
        ValueError,
        match=r"collection \S+ version 1: 1,000,000 values at epsilon 4 need more .* linear-olh in place of pgr",
    ):
        build_protocol(spec)


@pytest.mark.parametrize("counts", [[100, 100, 100, 100, 100], [60, 100, 100, 100, 100], [100, 100, 100, 100, 160]])
def test_supports_are_tested_by_bonferroni_over_both_tails_of_all(counts: list[int]) -> None:
    mechanism, n = MECHANISMS["pgr 5 1"], 300
    q, p = float(mechanism.channel.q[0]), float(mechanism.channel.p[0])
    few, many = stats.binom.cdf(counts, n, q).min(), stats.binom.sf(np.array(counts) - 1, n, p).min()
    decoder = FoldedDecoder(mechanism, Pum(np.ones(5, dtype=np.bool_), (), np.empty((0, 5)), np.empty(0)))
    assert decoder.test(np.array(counts), n) == pytest.approx(min(1.0, 2 * 5 * min(few, many)))


@pytest.mark.parametrize("shape", [(64,), (4096,), (8192,), (4096, 3), (8192, 2)])
def test_the_transform_of_floats_is_that_of_integers(shape: tuple[int, ...]) -> None:
    integers = np.random.default_rng(1).integers(-1000, 1000, shape)
    exact = walsh_hadamard(integers)
    # Transforming twice multiplies by the order.
    assert (walsh_hadamard(exact) == shape[0] * integers).all()
    assert (walsh_hadamard(integers.astype(np.float64)) == exact).all()
