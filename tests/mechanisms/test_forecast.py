"""What ``uldp check`` forecasts: errors of published estimators, forged reports, and counts drawn without reports."""

import re

import numpy as np
import pytest

from tests.build import spec
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.inference.forecast import LARGEST, draw_counts, equal_shares, falling_shares, rounded
from uldp.mechanisms.inference.forgery import forgery_text, least_flagged_share
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL, fit_counts
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum

K, N = 20, 20_000
SENSITIVE = np.arange(K) < 12
MECHANISMS: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(np.ones(K, dtype=np.bool_), 1.0),
    "urr": RandomizedResponse(SENSITIVE, 1.0),
    "oue": UnaryEncoding(np.ones(K, dtype=np.bool_), 1.0, OUE_THETA),
    "urap": UnaryEncoding(SENSITIVE, 1.0, sue_theta(1.0)),
    "ss": SubsetSelection(K, 1.0),
}
WITHOUT_TAGS = Pum(SENSITIVE, (), np.empty((0, K)), np.empty(0))


@pytest.mark.parametrize("name", MECHANISMS)
def test_drawn_counts_have_the_mean_and_the_variance_of_reports(name: str) -> None:
    channel, r, rng = MECHANISMS[name].channel, falling_shares(K), np.random.default_rng(1)
    drawn = np.array([channel.unbiased(draw_counts(channel, r, N, rng), N) for _ in range(2000)])
    variance = channel.variance(r, N)
    assert np.abs((drawn.mean(axis=0) - r) / np.sqrt(variance / 2000)).max() < 4.5
    assert drawn.var(axis=0) / variance == pytest.approx(1, abs=0.2)


def test_no_forecast_is_above_the_largest_distance_of_distributions() -> None:
    assert MECHANISMS["rr"].channel.expected_l1(equal_shares(K), 10) > 2
    assert PureDecoder(MECHANISMS["rr"], WITHOUT_TAGS).expected_l1(equal_shares(K), 10, "empirical") == 2


@pytest.mark.parametrize("name", ["rr", "urr", "oue", "urap"])
def test_the_least_flagged_share_of_forgers_separates_windows(name: str) -> None:
    channel, r, n = MECHANISMS[name].channel, falling_shares(K), 1_000_000
    target = int(np.argmin(np.where(channel.q > 0, r, 1)))
    share = least_flagged_share(channel, r, n, target, 0.0)
    assert share is not None
    for factor, flagged in ((0.9, False), (1.1, True)):
        forgers = round(n * share * factor)
        counts = (n - forgers) * channel.support_probability(r)
        counts[target] += forgers
        fit = fit_counts(channel, rounded(counts, round(counts.sum())), n)
        assert fit is not None
        assert (fit.p_value < ALARM_LEVEL) == flagged


def test_too_few_reports_flag_no_forger() -> None:
    channel = MECHANISMS["rr"].channel
    assert least_flagged_share(channel, falling_shares(K), 50, 0, 0.0) is None
    assert forgery_text(channel, falling_shares(K), 50, 0.0) == (
        f"one report without noise counts as {1 / channel.gain[0]:.3g} of the 50 users;"
        " no window with up to 50 % of them is flagged"
    )


@pytest.mark.parametrize(("weight", "text"), [(2, "2"), (99.6, "99.6"), (100.4, "100"), (12_345.6, "12,346")])
def test_the_weight_of_a_forger_has_three_digits_or_all_before_the_point(weight: float, text: str) -> None:
    channel = Channel(np.full(LARGEST + 1, 1 / weight + 0.1), np.full(LARGEST + 1, 0.1), independent_bits=True)
    said = forgery_text(channel, equal_shares(LARGEST + 1), 50, 0.0)
    assert said == f"one report without noise counts as {text} of the 50 users"


@pytest.mark.parametrize(
    ("mechanism", "support"), [("oue", 0.0), ("rr", 0.0), ("olh", 1 / 4), ("ss", (round(20 / (np.e + 1)) - 1) / 19)]
)
def test_a_forged_report_supports_other_values_by_chance(mechanism: str, support: float) -> None:
    protocol = build_protocol(spec(domain={"size": 20}, sensitive="all", mechanism={"name": mechanism, "epsilon": 1.0}))
    assert isinstance(protocol.mechanism, PureMechanism)
    assert protocol.mechanism.chance_support == pytest.approx(support)


@pytest.mark.parametrize("estimator", ["auto", "empirical"])
@pytest.mark.parametrize("name", ["rr", "oue"])
def test_the_number_of_users_that_a_warning_names_halves_the_error_of_a_guess(name: str, estimator: str) -> None:
    size, n, users = 10, 130, 200
    every = np.ones(size, dtype=np.bool_)
    of_two = {"rr": RandomizedResponse(every, 2.0), "oue": UnaryEncoding(every, 2.0, OUE_THETA)}
    decoder = PureDecoder(of_two[name], Pum(every, (), np.empty((0, size)), np.empty(0)))
    (warning,) = decoder.warnings(n, users, estimator)
    named = int(re.findall("take ([0-9,]+) users", warning)[0].replace(",", ""))
    falling = falling_shares(size)
    guess = float(np.abs(equal_shares(size) - falling).sum())
    assert decoder.expected_l1(falling, n, estimator) > guess / 2
    assert decoder.expected_l1(falling, round(named * n / users), estimator) <= guess / 2
    assert decoder.expected_l1(falling, round(named * n / users / 3), estimator) > guess / 2  # it names few, too
