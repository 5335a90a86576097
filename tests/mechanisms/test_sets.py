"""Sets of items: what a device makes of them, subset selection for sets, and the shares that follow."""

import math
from collections.abc import Iterator
from math import comb

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from uldp.mechanisms.decoders.set_decoder import SetDecoder
from uldp.mechanisms.encodings.set_encoding import SetEncoding
from uldp.mechanisms.families.sets.randomizer import SHARES, SetSelection, best_chosen, set_law
from uldp.mechanisms.laws.held_laws import MeanSize
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats, Mask, Symbols
from uldp.schemas.flags import Flag
from uldp.schemas.table import TableName


def encoded(sets: list[tuple[int, ...]], items: int, held: int, seed: int = 0) -> Symbols:
    spec = build.spec(
        domain={"set": {"of": {"size": items}, "at_most": held}}, mechanism={"name": "set-ss", "epsilon": 1.0}
    )
    column = spec.variables[""].kind.column(sets)
    return SetEncoding(items, held).encode([Held(column, np.full(len(sets), -1))], default_rng(seed))


def rows(there: Mask) -> Symbols:
    """Sets as rows, of which items are there."""
    width, items = max(int(there.sum(axis=1).max()), 1), there.shape[1]
    first = np.sort(np.where(there, np.arange(items), items), axis=1)[:, :width]
    return np.where(first < items, first, -1)


def test_each_missing_item_is_another_dummy() -> None:
    assert encoded([(), (2,), (0, 4), (1, 2, 3)], 5, 3).tolist() == [[5, 6, 7], [2, 5, 6], [0, 4, 5], [1, 2, 3]]


@pytest.mark.parametrize(("symbols", "held", "epsilon"), [(63, 3, 1.0), (20, 8, 2.0), (9, 2, 4.0), (30, 5, 0.1)])
def test_p_and_q_are_those_of_the_law(symbols: int, held: int, epsilon: float) -> None:
    e = math.exp(epsilon)
    for chosen in range(1, symbols - held):
        miss, law = comb(symbols - held, chosen), set_law(symbols, held, np.array([float(chosen)]), epsilon)
        total = e * (comb(symbols, chosen) - miss) + miss
        others = comb(symbols - 1 - held, chosen - 1)
        assert law.p[0] == pytest.approx(e * comb(symbols - 1, chosen - 1) / total)
        assert law.q[0] == pytest.approx((e * (comb(symbols - 1, chosen - 1) - others) + others) / total)


@pytest.mark.parametrize(
    ("items", "held", "epsilon", "published"),
    [(1000, 3, 1, 12.1), (1000, 3, 2, 2.2), (1000, 3, 4, 0.21), (1000, 8, 1, 32.8), (10_000, 20, 2, 15.2)],
)
def test_the_best_size_has_the_least_mean_variance(items: int, held: int, epsilon: int, published: float) -> None:
    symbols = items + held

    def variances(sizes: Floats) -> Floats:
        law = set_law(symbols, held, sizes, epsilon)
        means = [law.q + (law.p - law.q) * share for share in SHARES]
        return np.array([m * (1 - m) / (law.p - law.q) ** 2 for m in means])

    chosen = best_chosen(symbols, held, epsilon)
    sizes = np.arange(1.0, symbols // 2)
    total = variances(sizes).sum(axis=0)
    assert chosen == sizes[total.argmin()]
    # Of an item that nobody holds, it is within a quarter of what the best size for such items would have.
    of_rare, least = variances(sizes[[chosen - 1]])[0, 0], variances(sizes)[0].min()
    assert least == pytest.approx(published, rel=0.03)
    assert least <= of_rare <= 1.25 * least


def sets_of(kind: str, items: int, held: int, n: int, rng: np.random.Generator) -> Symbols:
    there = np.zeros((n, items), dtype=np.bool_)
    if kind == "alone":
        there = rng.random((n, items)) < np.minimum(0.6, 0.7 / np.arange(1, items + 1))
    elif kind == "together":
        there[: n // 2, :held] = there[n // 2 : 3 * n // 4, :1] = True
    elif kind == "all":
        there[:, :held] = True
    return rows(there)


def windows(kind: str, number: int, n: int = 2000) -> Iterator[tuple[SetDecoder, Symbols, Floats]]:
    rng, items, held = default_rng(4), 40, 3
    mechanism, encoding = SetSelection(items + held, 1.5, held), SetEncoding(items, held)
    decoder = SetDecoder(mechanism, items)
    for _ in range(number):
        sets = sets_of(kind, items, held, n, rng)
        symbols = encoding.encode([Held(sets, np.full(n, -1))], rng)
        truth = np.bincount(symbols.ravel(), minlength=items + held) / n
        yield decoder, mechanism.statistic(mechanism.perturb(symbols, rng)), truth


def test_forged_reports_are_flagged() -> None:
    (decoder, cells, _), *_ = windows("alone", 1)
    rng, mechanism = default_rng(0), SetSelection(43, 1.5, 3)
    forged = np.zeros((600, 43), dtype=np.int64)
    forged[:, rng.permutation(40)[: mechanism.chosen]] = 1  # each supports the same items, without noise
    assert decoder.p_values(cells + forged.sum(axis=0), 2600)[Flag.IMPROBABLE_COUNTS] < 1e-6


@pytest.mark.parametrize("estimator", SetDecoder.estimators)
def test_shares_are_of_users_and_sum_to_what_they_report(estimator: str) -> None:
    ((decoder, cells, truth),) = windows("alone", 1)
    share, size = decoder.tables(cells, 2000, estimator)
    linear = decoder.linear(cells, 2000)
    assert (share.name, size.name) == (TableName.SHARE, TableName.MEAN_SIZE)
    assert not share.whole
    assert size.values[0] == pytest.approx(truth[:40].sum(), abs=4 * size.stderr[0])
    if estimator != "empirical":
        assert 0 <= share.values.min() <= share.values.max() <= 1
        assert share.values.sum() == pytest.approx(truth[:40].sum(), abs=0.3)
        error, of_unbiased = (np.square(each - truth[:40]).mean() for each in (share.values, linear.values))
        assert error < of_unbiased


@pytest.mark.parametrize("kind", ["alone", "together", "all"])
def test_sums_of_items_have_a_bound_of_their_variance(kind: str) -> None:
    n, items, held, rng = 400, 12, 3, default_rng(5)
    mechanism, encoding = SetSelection(items + held, 1.0, held), SetEncoding(items, held)
    decoder = SetDecoder(mechanism, items)
    weights = np.zeros((items, 4))
    weights[:2, 0], weights[:, 1] = 1, 1
    weights[0, 2], weights[1, 2], weights[:, 3] = 1, -1, rng.normal(size=items)
    found, claimed = [], []
    for _ in range(400):
        symbols = encoding.encode([Held(sets_of(kind, items, held, n, rng), np.full(n, -1))], rng)
        linear = decoder.linear(mechanism.statistic(mechanism.perturb(symbols, rng)), n)
        found.append(linear.values @ weights)
        claimed.append((weights * linear.times(weights)).sum(axis=0))
    ratio = np.var(found, axis=0) / np.mean(claimed, axis=0)
    assert ratio.max() < 1 + 5 * math.sqrt(2 / 400)
    assert ratio.min() > 0.3  # it is no bound of nothing


def test_the_mean_size_knows_that_dummies_are_held_together() -> None:
    r = np.array([0.5, 0.2, 0.1, 0.9, 0.5, 0.2])
    mechanism = SetSelection(6, 1.0, 3, 2)
    law = MeanSize(mechanism.channel)
    rng, n = default_rng(1), 200_000
    dummies = rng.choice(4, n, p=[0.1, 0.4, 0.3, 0.2])  # so many dummies, so that 0.9, 0.5 and 0.2 hold them
    symbols = np.where(np.arange(3) < dummies[:, np.newaxis], 3 + np.arange(3), np.arange(3))
    bits = np.unpackbits(mechanism.perturb(np.sort(symbols, axis=1), rng), axis=1, count=6)
    scores = -bits[:, 3:].sum(axis=1, dtype=np.float64) / mechanism.channel.gain[0]
    found, centred = law.each(r[3:]), scores - scores.mean()
    assert found.variance[0] == pytest.approx(scores.var(), rel=0.02)
    assert found.third[0] == pytest.approx((centred**3).mean(), abs=5 * math.sqrt((centred**6).mean() / n))
    assert law.reach == pytest.approx(np.ptp(scores))


@pytest.mark.parametrize(("chosen", "most"), [(1, 1), (2, 2), (5, 3)])
def test_one_forged_report_moves_the_mean_size_by_the_heaviest_report(chosen: int, most: int) -> None:
    decoder, n = SetDecoder(SetSelection(13, 1.0, 3, chosen), 10), 50
    honest = np.repeat([4 * chosen, 0, n - 1], [10, 3, 0])[:13]
    none, all_of_them = honest.copy(), honest.copy()
    none[:chosen] += 1
    all_of_them[10 : 10 + most] += 1
    all_of_them[: chosen - most] += 1
    moved = [float(decoder.mean_size(cells, n).values[0]) for cells in (none, all_of_them)]
    assert n * (moved[0] - moved[1]) == pytest.approx(decoder.heaviest(decoder.size_table(none, n, 0.0)))
