"""The cumulants of a report by law are those of the enumeration of all reports."""

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from uldp.mechanisms.families.folds.randomizer import HadamardResponse, ProjectiveGeometryResponse
from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse
from uldp.mechanisms.kernels.block_designs import HadamardDesign
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import ChannelLaw, Payloads, law_of
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Floats

K = 5
#: The probability of each report, the symbols that it supports (rows of 0 and 1), and the law.
Enumerated = tuple[Floats, Floats, ChannelLaw]
THETA = np.array([0.4, 0.25, 0.2, 0.1, 0.05])
#: Single values, a group, all values, a difference, and any weights.
W = np.column_stack(
    [np.eye(K)[:, 1], np.eye(K)[:, 4] * -2, [1, 1, 0, 1, 0], np.ones(K), [1, -1, 0, 0, 0], [0.3, -1.2, 0.0, 2.0, 0.7]]
)


def independent_bits() -> Enumerated:
    p, q = np.array([0.5, 0.6, 0.7, 0.4, 0.9]), np.array([0.2, 0.1, 0.3, 0.0, 0.0])
    rows = np.array(list(product([0.0, 1.0], repeat=K)))
    given = [np.where(np.arange(K) == x, p, q) for x in range(K)]
    of_each = np.array([np.prod(np.where(rows, one, 1 - one), axis=1) for one in given])
    return THETA @ of_each, rows, law_of(Channel(p, q, True))


def one_symbol(nothing: float = 0.0) -> Enumerated:
    q = np.array([0.1, 0.1, 0.1, 0.0, 0.0]) * (1 - nothing)
    p = np.array([0.8, 0.8, 0.8, 0.7, 0.7]) * (1 - nothing)
    channel = Channel(p, q, False)
    m = channel.support_probability(THETA)
    return np.append(m, 1 - m.sum()), np.vstack([np.eye(K), np.zeros(K)]), law_of(channel)


def subsets(sensitive: int) -> Enumerated:
    v, w, p, named = sensitive, 2, 0.7, 0.6
    own, others = list(combinations(range(v), w)), list(range(v, K))
    rows = np.array(
        [np.isin(np.arange(K), each) for each in own] + [np.arange(K) == x for x in others], dtype=np.float64
    )
    given = []
    for x in range(K):
        holds = np.array([x in each for each in own])
        if x < v:
            of_sets = np.where(holds, p / holds.sum(), (1 - p) / (~holds).sum())
            given.append(np.concatenate([of_sets, np.zeros(len(others))]))
        else:
            of_sets = np.full(len(own), (1 - named) / len(own))
            given.append(np.concatenate([of_sets, [named * (x == other) for other in others]]))
    noise, of_free = (w - p) / (v - 1), (1 - named) * w / v
    ps, qs, less = (np.where(np.arange(K) < v, *pair) for pair in ((p, named), (noise, 0.0), (of_free, 0.0)))
    q_free = less if others else None
    return THETA @ np.array(given), rows, law_of(Channel(ps, qs, False, supported=w, q_non_sensitive=q_free))


def blocks() -> Enumerated:
    sensitive = np.array([True, True, True, False, False])
    mechanism = BlockResponse(sensitive, 1.0, HadamardDesign(3))
    channel = mechanism.channel
    assert channel.blocks is not None
    return channel.blocks.law(THETA), np.rint(channel.blocks.supported(np.eye(channel.size))), law_of(channel)


def folded(mechanism: FoldedMechanism) -> Enumerated:
    rows = mechanism.supported(np.eye(K))
    law = Payloads(mechanism.channel, mechanism, mechanism.law, mechanism.statistic_size)
    return mechanism.law(THETA), rows, law


def enumerated() -> Iterator[tuple[str, Enumerated]]:
    yield "independent bits", independent_bits()
    yield "one symbol", one_symbol()
    yield "one symbol, or none", one_symbol(nothing=0.2)
    yield "subsets", subsets(K)
    yield "subsets with free symbols", subsets(3)
    yield "blocks with free symbols", blocks()
    yield "hadamard", folded(HadamardResponse(K, 1.0))
    yield "projective geometry", folded(ProjectiveGeometryResponse(K, 1.0))


LAWS = dict(enumerated())


def scores(rows: Floats, channel: Channel) -> Floats:
    """r-hat of each report alone, shape (reports, K), by the formula of the estimate."""
    return np.array([channel.unbiased(row.astype(np.int64), 1) for row in rows])


@pytest.mark.parametrize("name", LAWS)
def test_cumulants_are_those_of_all_reports(name: str) -> None:
    probability, rows, law = LAWS[name]
    centred = scores(rows, law.channel) @ W - THETA @ W
    found = law.sums(W, THETA)
    assert found.variance == pytest.approx(probability @ centred**2, rel=1e-9)
    assert found.third == pytest.approx(probability @ centred**3, rel=1e-9, abs=1e-12)
    assert (found.step**2 >= found.variance - 1e-12).all()


@pytest.mark.parametrize("name", LAWS)
def test_each_is_the_sum_of_one_value(name: str) -> None:
    law = LAWS[name][2]
    for each, of_sum in zip(law.each(THETA), law.sums(np.eye(K), THETA), strict=True):
        assert each == pytest.approx(of_sum, nan_ok=True)


@pytest.mark.parametrize("name", LAWS)
def test_the_product_is_with_the_covariance_of_all_reports(name: str) -> None:
    probability, rows, law = LAWS[name]
    centred = scores(rows, law.channel) - THETA
    assert law.times(W, THETA) == pytest.approx(centred.T @ (probability[:, np.newaxis] * (centred @ W)), abs=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_a_sum_is_exact_where_reports_have_two_scores(name: str) -> None:
    probability, rows, law = LAWS[name]
    found = law.sums(W, THETA)
    of_reports = (scores(rows, law.channel) @ W)[probability > 0]
    for low, high, each in zip(found.low, found.high, of_reports.round(9).T, strict=True):
        if not np.isnan(low):
            assert set(each) <= {round(low, 9), round(high, 9)}
    assert found.exact[0] == (len(set(of_reports[:, 0].round(9))) == 2)
