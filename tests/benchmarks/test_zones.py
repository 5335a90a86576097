"""Zones gain what the docs say: fewer seeds than there, and bounds that the means of 20 seeds keep by a fifth."""

import pytest

from benchmarks.zones import FEWER_USERS, USERS, WINDOWS, Setting, measure, measure_coverage

SEEDS = 3


@pytest.mark.parametrize(
    ("setting", "users", "most"),
    [
        (Setting("nested", "nested.yaml", zone_epsilon=1.0, windows=WINDOWS), USERS, 0.08),
        (Setting("nested", "nested.yaml", zone_epsilon=2.0, windows=WINDOWS), USERS, 0.06),
        (Setting("zones", "zones.yaml"), USERS, 0.06),
        (Setting("zones", "zones.yaml"), FEWER_USERS, 0.09),
    ],
    ids=["nested, 1", "nested, 2", "zones", "zones, fewer users"],
)
def test_zones_halve_the_loss(setting: Setting, users: int, most: float) -> None:
    assert measure(setting, seeds=SEEDS, users=users).mean() <= most


def test_one_window_gains_less_and_never_loses() -> None:
    plain = measure(Setting("plain"), seeds=SEEDS)
    alone = measure(Setting("nested", "nested.yaml", zone_epsilon=1.0), seeds=SEEDS)
    assert plain.mean() > 0.12
    assert alone.mean() < plain.mean()


def test_zones_gain_nothing_below_epsilon_3() -> None:
    plain, zones = (measure(Setting("", spec), epsilon=2.5, seeds=SEEDS).mean() for spec in ("spec.yaml", "zones.yaml"))
    assert zones > plain


def test_what_is_shown_covers_where_a_learned_background_does_not() -> None:
    covered = measure_coverage(Setting("nested", "nested.yaml", zone_epsilon=2.0, windows=WINDOWS), seeds=SEEDS)
    assert covered.share < 0.93 < 0.95 < covered.shown
    assert covered.weighted < 0.97 < covered.shown_weighted
