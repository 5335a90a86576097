"""The accuracy of estimators, on a part of the settings of ``benchmarks.accuracy``."""

import numpy as np
import pytest

from benchmarks.accuracy import Setting, ratios

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
