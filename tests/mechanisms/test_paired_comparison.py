"""Rankings by one drawn pair of candidates: bias, errors, who beats whom, and what is refused."""

import math
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pytest

from tests.build import spec
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.paired_comparison.decoder import RankingDecoder
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.kinds import Ranking
from uldp.schemas.table import Table, TableName

K = 3
PAIRS = [(0, 1), (0, 2), (1, 2)]
#: a > b > c, b > c > a and c > a > b, equally often, by the places of the candidates: Condorcet's cycle.
CYCLE = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])


def decoder_of(epsilon: float = 1.0, **keys: object) -> RankingDecoder:
    found = build_protocol(
        spec(domain={"ranking": {"of": ["a", "b", "c"]}}, mechanism={"name": "pairs", "epsilon": epsilon}, **keys)
    ).decoder
    assert isinstance(found, RankingDecoder)
    return found


def tables(cells: Counts, estimator: str = "empirical", epsilon: float = 1.0) -> dict[TableName, Table]:
    found = decoder_of(epsilon).tables(cells, int(cells.sum()), estimator)
    return {table.name: table for table in found}


def expected_cells(above: Floats, n: int, epsilon: float) -> Counts:
    """The cells to expect, rounded, if a share ``above`` of users ranks the first of each pair higher."""
    p = np.exp(epsilon) / (np.exp(epsilon) + 1)
    first = p * above + (1 - p) * (1 - above)
    cells: Counts = np.rint(n * np.stack([first, 1 - first], axis=1)).astype(np.int64).ravel()
    return cells


def test_a_cycle_is_seen_although_all_scores_are_equal() -> None:
    above = np.array([(CYCLE[:, i] < CYCLE[:, j]).mean() for i, j in PAIRS])
    found = tables(expected_cells(above, 30_000, 1.0))
    beats = found[TableName.BEATS].values.reshape(K, K)
    assert beats == pytest.approx(np.array([[0, 2 / 3, 1 / 3], [1 / 3, 0, 2 / 3], [2 / 3, 1 / 3, 0]]), abs=1e-3)
    low, _ = ends_of(found[TableName.BEATS])
    winners = low.reshape(K, K) > 0.5
    assert winners.sum(axis=1).tolist() == [1, 1, 1]
    assert found[TableName.SCORE].values == pytest.approx(np.ones(K), abs=1e-3)


class OfAllWindows(NamedTuple):
    """The law of the scores of n reports, from each number that the cells may have.

    Attributes:
        mean: Shape (K,): the mean of the scores.
        covariance: Shape (K, K): their covariance.
        stated: Shape (K, K): the mean of the covariances that are stated.
    """

    mean: Floats
    covariance: Floats
    stated: Floats


def of_all_windows(above: Floats, n: int, epsilon: float) -> OfAllWindows:
    p = np.exp(epsilon) / (np.exp(epsilon) + 1)
    first = p * above + (1 - p) * (1 - above)
    law = np.stack([first, 1 - first], axis=1).ravel() / len(PAIRS)
    decoder, scores, stated, weights = decoder_of(epsilon), [], [], []
    for bars in combinations(range(n + len(law) - 1), len(law) - 1):
        cells = np.diff([-1, *bars, n + len(law) - 1]) - 1
        linear = decoder.linear(cells, n)
        scores.append(linear.values)
        stated.append(linear.times(np.eye(K)))
        weights.append(math.factorial(n) * math.prod(q**c / math.factorial(c) for q, c in zip(law, cells, strict=True)))
    weight, score = np.array(weights), np.array(scores)
    assert weight.sum() == pytest.approx(1)
    off = score - weight @ score
    return OfAllWindows(
        weight @ score, off.T @ (off * weight[:, np.newaxis]), np.tensordot(weight, np.array(stated), 1)
    )


SAME, BETWEEN = np.array([1.0, 1.0, 1.0]), np.array([0.9, 0.6, 0.2])


@pytest.mark.parametrize("above", [SAME, BETWEEN])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_scores_are_unbiased_although_some_pairs_have_no_reports(n: int, epsilon: float, above: Floats) -> None:
    truth = np.zeros(K)
    for (i, j), share in zip(PAIRS, above, strict=True):
        truth[i] += share
        truth[j] += 1 - share
    assert of_all_windows(above, n, epsilon).mean == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "above"), [(1.0, SAME), (1.0, BETWEEN), (4.0, BETWEEN)])
def test_stated_covariances_are_those_of_scores_whose_pairs_have_random_numbers_of_reports(
    epsilon: float, above: Floats
) -> None:
    found = of_all_windows(above, 9, epsilon)
    # The part that two reports have in the centres of each other is left out: some percent at nine reports.
    assert found.stated == pytest.approx(found.covariance, abs=0.15 * float(found.covariance.max()))
    assert np.trace(found.stated) == pytest.approx(np.trace(found.covariance), rel=0.12)
    assert found.stated.sum(axis=0) == pytest.approx(np.zeros(K), abs=1e-9)


def test_auto_is_within_0_and_1_and_its_intervals_are_those_of_empirical() -> None:
    cells = np.array([500, 0, 250, 250, 0, 500])
    empirical, auto = tables(cells), tables(cells, "auto")
    assert empirical[TableName.BEATS].values.max() > 1
    assert auto[TableName.BEATS].values[[1, 2, 5]] == pytest.approx([1, 0.5, 0])
    for name, most in ((TableName.BEATS, 1.0), (TableName.SCORE, K - 1.0)):
        low, _ = ends_of(empirical[name])
        # An interval holds what is published, which may be outside of the range if it is unbiased.
        assert auto[name].low == pytest.approx(low.clip(0.0, most))
        assert auto[name].unbiased == pytest.approx(empirical[name].values)


def test_nothing_is_known_of_a_pair_without_reports() -> None:
    beats = tables(np.array([300, 200, 0, 0, 260, 240]))[TableName.BEATS]
    low, high = ends_of(beats)
    assert (beats.values[2], low[2], high[2], beats.stderr[2]) == (0.5, 0.0, 1.0, 0.5)
    assert beats.unbiased is not None
    assert beats.unbiased[2] == 0.5


def test_a_ranking_is_read_as_the_places_of_its_candidates() -> None:
    kind = Ranking(of=["a", "b", "c"])
    assert kind.read("b>a>c") == kind.read(" b > a > c") == kind.check([1, 0, 2], "") == (1, 0, 2)
    assert kind.read("c>a>b") == (1, 2, 0)
    for order in permutations(range(3)):
        places = kind.check(order, "")
        assert [places.index(place) for place in range(3)] == list(order)


@pytest.mark.parametrize("text", ["a>b", "a>b>b", "a>b>d", "", "a>b>c>a"])
def test_what_is_no_ranking_of_all_candidates_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no ranking of all candidates; write each once"):
        Ranking(of=["a", "b", "c"]).read(text)
