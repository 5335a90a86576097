"""The accuracy of estimators, on a part of the settings of the benchmarks: which is closer, and by how much."""

from statistics import fmean

import numpy as np
import pytest

from benchmarks import trees, zones
from benchmarks.accuracy import Setting, ratios
from benchmarks.numbers import auto, borda, compare, kept, ordered
from benchmarks.numbers.before import before

TRUTHS: list[tuple[str, str]] = [
    ("census", "urap"),
    ("census", "urr"),
    ("manhattan", "urap"),
    ("falling", "uoue"),
    ("equal", "urap"),
]
SETTINGS = [
    Setting(truth, mechanism, epsilon, users)
    for truth, mechanism in TRUTHS
    for epsilon, users in ((0.5, 10_000), (0.5, 100_000), (1.0, 10_000), (2.0, 100_000))
]
#: Where n is large, both estimates are nearly the same, and few windows do not tell which is better.
SAME = 1.005


def test_wls_is_never_worse_than_norm_sub() -> None:
    measured = {setting: setting.errors(("wls", "norm-sub"), windows=6) for setting in SETTINGS}
    found = ratios(measured, "wls", "norm-sub")
    assert found.shape == (20, 2)
    assert found.max() <= SAME
    assert np.exp(np.log(found).mean(axis=0)).max() < 0.75


@pytest.mark.parametrize("mechanism", ["rr", "oue", "urap"])
@pytest.mark.parametrize("truth", ["census", "falling"])
def test_auto_is_never_worse_than_wls_and_better_where_n_is_small(truth: str, mechanism: str) -> None:
    settings = [Setting(truth, mechanism, 0.5, users) for users in (1_000, 10_000, 100_000)]
    found = ratios({setting: setting.errors(("auto", "wls"), windows=6) for setting in settings}, "auto", "wls")
    assert found.max() <= SAME
    assert found[0].max() < 0.9


def test_auto_is_better_than_mle_at_small_epsilon() -> None:
    # The census, uRR, epsilon .1 and a million reports: l1 .43 by mle and .34 by auto.
    errors = Setting("census", "urr", 0.1, 1_000_000).errors(("auto", "mle"), windows=6)
    assert errors["auto"][0] < 0.85 * errors["mle"][0]


def test_a_long_tail_is_not_heavier_than_it_is() -> None:
    errors = trees.measure_setting(trees.Setting(1000, 1.0, 20_000, "durations"), windows=12)
    # The nearest shares have .07 too much in the upper half, and their 90 % quantile is .19 of the range off.
    assert errors.upper_half["nearest"] > 0.05
    assert abs(errors.upper_half["auto"]) < 0.03
    assert errors.quantile["auto"] < 0.6 * errors.quantile["nearest"]
    assert errors.to_nearest < 0.65


def test_auto_is_near_the_best_candidate_in_all_settings() -> None:
    found = [trees.measure_setting(setting, windows=24) for setting in trees.settings()]
    assert len(found) == 48
    assert fmean(errors.to_nearest for errors in found) <= 0.85
    assert max(errors.to_best for errors in found) <= 1.35


SEEDS = 3


@pytest.mark.parametrize(
    ("setting", "users", "most"),
    [
        (zones.Setting("nested", "nested.yaml", zone_epsilon=1.0, windows=zones.WINDOWS), zones.USERS, 0.08),
        (zones.Setting("nested", "nested.yaml", zone_epsilon=2.0, windows=zones.WINDOWS), zones.USERS, 0.06),
        (zones.Setting("zones", "zones.yaml"), zones.USERS, 0.06),
        (zones.Setting("zones", "zones.yaml"), zones.FEWER_USERS, 0.09),
    ],
    ids=["nested, 1", "nested, 2", "zones", "zones, fewer users"],
)
def test_zones_halve_the_loss(setting: zones.Setting, users: int, most: float) -> None:
    assert zones.measure(setting, seeds=SEEDS, users=users).mean() <= most


def test_one_window_gains_less_and_never_loses() -> None:
    plain = zones.measure(zones.Setting("plain"), seeds=SEEDS)
    alone = zones.measure(zones.Setting("nested", "nested.yaml", zone_epsilon=1.0), seeds=SEEDS)
    assert plain.mean() > 0.12
    assert alone.mean() < plain.mean()


def test_zones_gain_nothing_below_epsilon_3() -> None:
    plain, divided = (
        zones.measure(zones.Setting("", spec), epsilon=2.5, seeds=SEEDS).mean() for spec in ("spec.yaml", "zones.yaml")
    )
    assert divided > plain


def test_what_is_shown_covers_where_a_learned_background_does_not() -> None:
    covered = zones.measure_coverage(
        zones.Setting("nested", "nested.yaml", zone_epsilon=2.0, windows=zones.WINDOWS), seeds=SEEDS
    )
    assert covered.share < 0.93 < 0.95 < covered.shown
    assert covered.weighted < 0.97 < covered.shown_weighted


def test_blocks_have_their_settings() -> None:
    blocks = (auto, ordered, borda, kept, compare)
    assert [len(set(block.settings())) for block in blocks] == [420, 48, 42, 16, 56]
    assert before("auto").keys() == {str(at) for at in range(420)}
    assert before("ordered").keys() == {str(at) for at in range(48)}


def test_equal_settings_have_equal_draws() -> None:
    few = auto.Setting("urr", 20, 1.0, "zipf", 10_000)
    # wls is not worse by more than chance than it is at a million reports, where noise is a hundredth.
    assert auto.errors(few, "wls", 8) == auto.errors(few, "wls", 8) > auto.errors(few._replace(n=1_000_000), "wls", 8)


def test_scores_of_many_reports_about_each_pair_cover() -> None:
    figures, bias, error = borda.measure(borda.Setting(7, 1_000, "worths", 4.0), windows=100)
    assert figures.mean > 0.9
    assert bias < error


def test_roll_ups_and_comparisons_are_measured() -> None:
    measured = kept.measure(kept.Setting("duchi", 3.0, 1.0, 6), roll_ups=60)
    assert measured["roll-up: mean"][1] > 0.75
    whole, single, least = compare.measure(compare.Setting("rr", 1.0, 3_000, 3_000), windows=60)
    assert whole < 0.2
    assert single < 0.25
    assert least > 0.75
