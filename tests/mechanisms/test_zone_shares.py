"""The shares of zones behind a nested tag: unbiased, as far off as they say, and combined with the background."""

import numpy as np
import pytest
from numpy.random import default_rng

from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.mechanisms.zones.zone_shares import BotReports, ZoneShares, learn
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.zones import Zones

#: Eight values, the first of them in X_S, in four zones; the last zone has one value.
OF_VALUE = np.array([0, 0, 0, 1, 1, 2, 2, 3])
SENSITIVE = np.arange(8) < 1
TRUE = np.array([0.5, 0.1, 0.3, 0.1])
BACKGROUND = np.array([0.1, 0.1, 0.2, 0.2, 0.0, 0.0, 0.0, 0.4])
HIDDEN, N, WINDOWS = 0.3, 20_000, 2_000
NEST = ProjectiveResponse(4, 1.0)
MECHANISM = NestedResponse(SENSITIVE, 2.0, [NEST])


def zoning(background: Floats = BACKGROUND, strength: float = 50.0) -> Zoning:
    pum = Pum(SENSITIVE, ("home",), background[np.newaxis], np.array([strength]))
    return Zoning(pum, (Zones(("a", "b", "c", "d"), OF_VALUE),), (NEST,))


def windows(n: int = N, hidden: float = HIDDEN) -> Counts:
    """The points of the bot in WINDOWS windows; all visible users are at value 1."""
    r = np.concatenate([[0, 1 - hidden, 0, 0, 0, 0, 0, 0], hidden * TRUE])
    return default_rng(17).multinomial(n, MECHANISM.law(r), WINDOWS)[:, 8:]


def reports(counts: Counts, n: int = N) -> BotReports:
    return BotReports(NEST, counts, n, float(MECHANISM.channel.gain[8]), float(MECHANISM.channel.q[8]))


def learned(counts: Counts, n: int, known: Zoning) -> ZoneShares:
    return learn(known, 0, reports(counts, n))


def test_errors_of_combined_shares_cover_if_the_background_is_right() -> None:
    # The background is off by as much as its strength says: it is a draw around the truth.
    rng, n = default_rng(3), 2_000
    covered = []
    for counts in windows(n)[:600]:
        mass = rng.dirichlet(50 * TRUE)
        row = np.array([mass[0] / 3, mass[0] / 3, mass[0] / 3, mass[1] / 2, mass[1] / 2, mass[2], 0, mass[3]])
        of = learned(counts, n, zoning(row))
        covered.append(np.abs(of.shares - TRUE) <= 1.96 * of.stderr)
    assert 0.93 < np.mean(covered) < 0.99


def test_a_background_is_all_that_is_known_without_users_behind_the_tag() -> None:
    of = learned(np.zeros(NEST.points, dtype=np.int64), 1_000, zoning())
    assert of.shares == pytest.approx([0.4, 0.2, 0.0, 0.4])
    assert of.background == pytest.approx([0.1, 0.1, 0.2, 0.2, 0, 0, 0, 0.4])
    # Two zones whose values are not certain have most of the uncertainty, of 50 draws each in its share.
    assert 10 < of.strength < 60


def test_without_strength_only_the_reports_say_where_zones_are() -> None:
    counts = windows()[0]
    one = learned(counts, N, zoning(strength=np.nan))
    measured, variances = reports(counts).shares()
    assert one.shares == pytest.approx(onto_simplex(measured, variances, np.zeros_like(measured)))
    assert np.isnan(one.strength)
    # A zone of the background keeps its proportions; one without any is spread evenly.
    assert one.background[:3] / one.shares[0] == pytest.approx([0.25, 0.25, 0.5])
    assert one.background[5:7] == pytest.approx([one.shares[2] / 2] * 2)


def test_nothing_is_known_without_background_and_reports() -> None:
    of = learned(np.zeros(NEST.points, dtype=np.int64), 1_000, zoning(np.full(8, np.nan), np.nan))
    assert of.shares.tolist() == [0.25] * 4
    assert np.isnan(of.strength)
    assert np.isinf(of.stderr).all()
