"""Ranges over trees: the shapes, which estimator is closer for short ranges, and ``auto`` against its candidates."""

from statistics import fmean

from benchmarks.trees import Setting, measure_setting, settings


def test_a_long_tail_is_not_heavier_than_it_is() -> None:
    errors = measure_setting(Setting(1000, 1.0, 20_000, "durations"), windows=12)
    # The nearest shares have .07 too much in the upper half, and their 90 % quantile is .19 of the range off.
    assert errors.upper_half["nearest"] > 0.05
    assert abs(errors.upper_half["auto"]) < 0.03
    assert errors.quantile["auto"] < 0.6 * errors.quantile["nearest"]
    assert errors.to_nearest < 0.65


def test_auto_is_near_the_best_candidate_in_all_settings() -> None:
    found = [measure_setting(setting, windows=24) for setting in settings()]
    assert len(found) == 48
    assert fmean(errors.to_nearest for errors in found) <= 0.85
    assert max(errors.to_best for errors in found) <= 1.35
