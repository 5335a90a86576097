"""The decoder of strata: tables, errors and tests of a record, against the decoders of its parts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import create_autospec

import numpy as np
import pytest

from tests.mechanisms.estimates import say_the_same
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag

APPS, HOURS, CITIES = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.6, 0.3, 0.1]), np.array([0.4, 0.4, 0.1, 0.1, 0.0])
TRUTHS = (APPS, HOURS, CITIES)
NAMES = ("app", "hour", "city")
SHARES = (0.5, 0.2, 0.3)
RR = RandomizedResponse(np.ones(4, dtype=np.bool_), 1.0)
OUE = UnaryEncoding(np.ones(3, dtype=np.bool_), 1.0, OUE_THETA)
OLH = LocalHashing(5, 1.0)
PARTS: tuple[PureMechanism, ...] = (RR, OUE, OLH)
STRATA = Strata(PARTS, SHARES)


def pure(part: PureMechanism) -> PureDecoder:
    return PureDecoder(part, Pum(part.sensitive, (), np.empty((0, part.size)), np.empty(0)))


DECODER = StrataDecoder(NAMES, [pure(part) for part in PARTS], STRATA)


def statistics(n: int, runs: int, seed: int) -> list[Counts]:
    """The statistic of n reports in each of several runs."""
    rng = np.random.default_rng(seed)
    r = np.concatenate([share * truth for share, truth in zip(SHARES, TRUTHS, strict=True)])
    payloads = STRATA.perturb(rng.choice(STRATA.size, n * runs, p=r), rng)
    return [as_dense(cells) for cells in STRATA.tally([payloads], np.repeat(np.arange(runs), n), runs)]


def stub(p_values: Mapping[Flag, float] | None = None) -> Any:
    """A decoder that knows one estimator and returns given p-values."""
    found = create_autospec(Decoder, instance=True, estimators=("mean",))
    found.p_values.return_value = p_values or {}
    return found


def test_tables_are_those_of_the_parts_with_their_own_n() -> None:
    (cells,) = statistics(3000, 1, seed=1)
    tables = DECODER.tables(cells, 3000, "norm-sub")
    assert [table.of for table in tables] == [(name,) for name in NAMES]
    assert sum(table.n for table in tables) == 3000
    for table, part, (own, n) in zip(tables, PARTS, STRATA.split_cells(cells), strict=True):
        (alone,) = pure(part).tables(own, n, "norm-sub")
        assert say_the_same(table, replace(alone, of=table.of))


def test_an_estimator_of_no_part_is_refused() -> None:
    (cells,) = statistics(100, 1, seed=1)
    with pytest.raises(ValueError, match="no estimator 'mean'; choose one of auto, empirical"):
        DECODER.tables(cells, 100, "mean")


def test_a_part_without_reports_has_no_table_and_leaves_the_record_without_an_estimate() -> None:
    cells = STRATA.statistic(STRATA.perturb(np.array([0, 1, 7, 8]), np.random.default_rng(0)))
    DECODER.check(cells, 4)
    assert [(table.of, table.n) for table in DECODER.tables(cells, 4, "empirical")] == [(("app",), 2), (("city",), 2)]
    with pytest.raises(ValueError, match="no reports of hour"):
        DECODER.linear(cells, 4)


# Cells: 0 to 3 app, 4 the reports of hour, 5 to 7 hour, 8 the reports of city, 9 to 13 city.
@pytest.mark.parametrize(
    ("changes", "n", "message"),
    [
        ({}, 31, "do not sum to n = 31"),
        ({0: 11}, 30, r"app 11, hour 10, city 10\) do not sum to n = 30"),
        ({4: 9}, 30, "do not sum to n = 30"),
        ({4: -10, 8: 30}, 30, "do not sum to n = 30"),
        ({0: -1, 1: 11}, 30, "app: the cells sum to 10, and the least is -1, with n=10"),
        ({5: 11}, 30, "hour: a support count is outside of 0 to n = 10"),
        ({13: 11}, 30, "city: a support count is outside of 0 to n = 10"),
    ],
)
def test_check_refuses_cells_that_no_reports_give(changes: dict[int, int], n: int, message: str) -> None:
    cells = np.array([10, 0, 0, 0, 10, 5, 5, 5, 10, 3, 3, 3, 3, 3])
    DECODER.check(cells, 30)
    cells[list(changes)] = list(changes.values())
    with pytest.raises(ValueError, match=message):
        DECODER.check(cells, n)


RESPONSES = StrataDecoder(NAMES, [stub()] * 3, Strata([RR] * 3, SHARES))


def strata_p_values(n: int, runs: int, shares: tuple[float, ...]) -> Floats:
    """The p-values of the numbers of reports of the parts, in several runs."""
    numbers = np.random.default_rng(5).multinomial(n, shares, runs)
    cells = np.zeros((runs, 3 * RR.size), dtype=np.int64)
    cells[:, :: RR.size] = numbers
    return np.array([RESPONSES.p_values(of_run, n)[Flag.IMPROBABLE_STRATA] for of_run in cells])


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 4, 30, 1000, 10**9])
def test_honest_strata_are_seldom_improbable(n: int) -> None:
    runs = 10_000
    p_values = strata_p_values(n, runs, SHARES)
    assert p_values.max() <= 1
    for level in (0.001, 0.05, 0.2):
        assert (p_values <= level).mean() <= level + 5 * np.sqrt(level * (1 - level) / runs)


@pytest.mark.parametrize("shares", [(0.5, 0.25, 0.25), (0.45, 0.2, 0.35), (0.5, 0.15, 0.35)])
def test_strata_that_are_not_drawn_by_their_shares_are_improbable(shares: tuple[float, ...]) -> None:
    assert (strata_p_values(20_000, 100, shares) < 1e-6).all()


def test_p_values_of_parts_are_corrected_for_their_number() -> None:
    bits, counts = Flag.IMPROBABLE_PAYLOADS, Flag.IMPROBABLE_COUNTS
    stubs = [stub({bits: 0.01}), stub({bits: 0.2, counts: 0.6}), stub({counts: 0.7})]
    decoder = StrataDecoder(NAMES, stubs, STRATA)
    (cells,) = statistics(100, 1, seed=1)
    p_values = decoder.p_values(cells, 100)
    assert p_values.keys() == {bits, counts, Flag.IMPROBABLE_STRATA}
    assert p_values[bits] == 0.02
    assert p_values[counts] == 1.0


def test_the_least_share_can_be_tested() -> None:
    decoder = StrataDecoder(("a", "b"), [stub()] * 2, Strata([RR] * 2, [1 - 1e-9, 1e-9]))
    none, three = (np.array([100 - few, 0, 0, 0, few, 0, 0, 0]) for few in (0, 3))
    assert decoder.p_values(none, 100)[Flag.IMPROBABLE_STRATA] == 1.0
    assert decoder.p_values(three, 100)[Flag.IMPROBABLE_STRATA] < 1e-6
