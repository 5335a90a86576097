"""Intervals under PUM: of the visible share, of the share with what is assumed of hidden users, and the band."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.coverage import draw
from tests.mechanisms.estimates import ends_of, estimate_of
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding, sue_theta
from uldp.mechanisms.laws.interval import Ends
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.tags.pum_intervals import pum_intervals
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.table import Basis, Table, TableName

SIZE, N, TRIALS = 60, 20_000, 400
SENSITIVE = np.arange(SIZE) < 6
#: Of the users, 15 % hide behind each of two tags. A third of the values hides nobody.
_RNG = np.random.default_rng(21)
VISIBLE = 0.7 * _RNG.dirichlet(np.full(SIZE, 0.5))
HIDDEN = 0.15 * np.array([_RNG.dirichlet(np.where(np.arange(SIZE) % 3, 0.4, 1e-9)) for _ in range(2)])
R, TRUTH = np.append(VISIBLE, HIDDEN.sum(axis=1)), VISIBLE + HIDDEN.sum(axis=0)
OCCUPIED = HIDDEN.sum(axis=0) > 1e-9
#: A coverage of 0.95 that was measured in TRIALS windows is off by less than this, 4 standard deviations, though values
#: of one window miss together.
NOISE = 4 * np.sqrt(0.95 * 0.05 / TRIALS)

Z_S = np.append(SENSITIVE, [True, True])
MECHANISMS: dict[str, PureMechanism] = {
    "urr": RandomizedResponse(Z_S, 2.0),
    "urap": UnaryEncoding(Z_S, 2.0, sue_theta(2.0)),
}


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> PureMechanism:
    return MECHANISMS[request.param]


def pum(background: Floats, *strength: float) -> Pum:
    return Pum(SENSITIVE, ("home", "work"), background, np.array(strength))


def flat(*strength: float) -> Pum:
    """The background knows nothing, and says that hidden users are everywhere."""
    return pum(np.full((2, SIZE), 1 / SIZE), *strength)


def windows(mechanism: PureMechanism, rng: np.random.Generator) -> Counts:
    return draw(mechanism.channel, R, N, TRIALS, rng)


def covered(ends: Ends, truth: Floats) -> Mask:
    low, high = ends
    return (low <= truth) & (truth <= high)


def test_the_variance_of_a_background_is_that_of_jeffreys_posterior() -> None:
    m, pi = 30.0, np.array([0.0, 0.1, 0.9])
    model = Pum(np.ones(3, dtype=np.bool_), ("home", "work"), np.array([pi, pi]), np.array([m, np.inf]))
    variance = stats.beta.var(m * pi + 0.5, m * (1 - pi) + 0.5)
    np.testing.assert_allclose(model.background_variance(np.array([0, 0, 0, 0.2, 0.8])), 0.2**2 * variance)
    # A mass that is estimated below 0 hides nobody.
    assert not model.background_variance(np.array([0.5, 0.5, 0, -0.2, 0.2])).any()


@pytest.mark.parametrize("m", [30, 200])
def test_shares_are_covered_if_the_background_is_a_sample(mechanism: PureMechanism, m: int) -> None:
    rng = np.random.default_rng(m)
    each = []
    for counts in windows(mechanism, rng):
        sample = np.array([rng.multinomial(m, hidden / hidden.sum()) / m for hidden in HIDDEN])
        each.append(covered(pum_intervals(pum(sample, m, m), estimate_of(mechanism.channel, counts, N)).share, TRUTH))
    coverage = np.mean(each, axis=0)
    assert coverage.mean() >= 0.95 - NOISE
    assert coverage[OCCUPIED].mean() >= 0.95 - NOISE


def test_without_strength_the_intervals_of_shares_are_the_band(mechanism: PureMechanism) -> None:
    counts = windows(mechanism, np.random.default_rng(4))[0]
    found = pum_intervals(flat(np.nan, np.nan), estimate_of(mechanism.channel, counts, N))
    np.testing.assert_allclose(found.share, found.band)


def test_a_tag_without_strength_adds_its_mass_to_the_upper_end_alone(mechanism: PureMechanism) -> None:
    # So many reports that the noise is nothing.
    n = 10**12
    counts = np.rint(n * mechanism.channel.support_probability(R)).astype(np.int64)
    low, high = pum_intervals(flat(np.inf, np.nan), estimate_of(mechanism.channel, counts, n)).share
    home, work = HIDDEN.sum(axis=1)
    np.testing.assert_allclose(low, VISIBLE + home / SIZE, atol=1e-4)
    np.testing.assert_allclose(high, VISIBLE + home / SIZE + work, atol=1e-4)


def tables_of(model: Pum, counts: Counts, n: int = N, **keys: Any) -> dict[TableName, Table]:
    decoder = PureDecoder(MECHANISMS["urr"], model, **keys)
    return {table.name: table for table in decoder.tables(counts, n, "empirical")}


@pytest.mark.parametrize(
    ("strength", "basis"),
    [((50.0, 50.0), Basis.SCORE), ((50.0, np.nan), Basis.SCORE), ((np.nan, np.nan), Basis.ANY_BACKGROUND)],
)
def test_tables_name_their_method(strength: tuple[float, float], basis: Basis) -> None:
    tables = tables_of(flat(*strength), windows(MECHANISMS["urr"], np.random.default_rng(8))[0])
    assert {name: table.basis for name, table in tables.items()} == {
        TableName.SHARE: basis,
        TableName.VISIBLE: Basis.EXACT,
        TableName.BAND: Basis.ANY_BACKGROUND,
        TableName.HIDDEN: Basis.EXACT,
        TableName.BOUND: Basis.NONE,
    }
    assert [name for name, table in tables.items() if table.whole] == [TableName.SHARE]


def test_intervals_are_those_of_the_unbiased_estimate_for_each_estimator() -> None:
    decoder = PureDecoder(MECHANISMS["urr"], flat(50.0, 50.0))
    counts = windows(MECHANISMS["urr"], np.random.default_rng(12))[0]
    first, *others = (decoder.tables(counts, N, estimator) for estimator in decoder.estimators)
    for tables in others:
        for one, table in zip(first, tables, strict=True):
            if one.low is None or one.high is None or table.low is None or table.high is None:
                continue
            within = [(each.low < each.values) & (each.values < each.high) for each in (one, table)]  # type: ignore[operator]
            np.testing.assert_array_equal(one.low[np.all(within, axis=0)], table.low[np.all(within, axis=0)])
            np.testing.assert_array_equal(one.high[np.all(within, axis=0)], table.high[np.all(within, axis=0)])
            assert ((table.low <= table.values) & (table.values <= table.high)).all()


def test_the_band_begins_with_what_is_visible_and_ends_with_all_tags() -> None:
    tables = tables_of(flat(50.0, 50.0), windows(MECHANISMS["urr"], np.random.default_rng(9))[0])
    visible, band, hidden = (tables[name] for name in (TableName.VISIBLE, TableName.BAND, TableName.HIDDEN))
    np.testing.assert_allclose(band.values, visible.values + hidden.values.sum())
    (low, high), (least, _) = ends_of(band), ends_of(visible)
    np.testing.assert_allclose(low, least.clip(0.0), atol=1e-15)
    assert (high > band.values).all()


def test_simultaneous_intervals_hold_at_once() -> None:
    model, misses = flat(np.nan, np.nan), {False: 0, True: 0}
    truth = {TableName.VISIBLE: VISIBLE, TableName.HIDDEN: R[SIZE:], TableName.BAND: TRUTH}
    for counts in windows(MECHANISMS["urr"], np.random.default_rng(11)):
        for simultaneous in misses:
            tables = tables_of(model, counts, simultaneous=simultaneous)
            assert all(tables[name].simultaneous is simultaneous for name in truth)
            for name, true in truth.items():
                misses[simultaneous] += not covered(ends_of(tables[name]), true).all()
    # Each table misses in at most 1 of 20 windows; of 60 intervals that hold each alone, some miss in most windows.
    assert misses[True] <= len(truth) * TRIALS * (0.05 + NOISE)
    assert misses[False] > TRIALS / 2
