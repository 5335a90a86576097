"""Reports that support one symbol or none, as of a package from outside: they are counted, estimated and forecast."""

import numpy as np
import pytest

from tests.build import spec
from tests.mechanisms.protocols import first_specs
from tests.outside.drawn_bit.drawn_bit import DrawnBit
from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.inference.forecast import draw_counts, falling_shares
from uldp.mechanisms.inference.goodness_of_fit import checks
from uldp.mechanisms.inference.plausibility import counts_p_value
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats, Mask

K, N = 6, 5_000
MECHANISM = DrawnBit(np.ones(K, dtype=np.bool_), 2.0)
CHANNEL = MECHANISM.channel
DECODER = PureDecoder(MECHANISM, Pum(np.ones(K, dtype=np.bool_), (), np.empty((0, K)), np.empty(0)))
TRUTH = np.array([0.5, 0.3, 0.15, 0.05, 0.0, 0.0])


def windows(runs: int, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    return np.array(
        [MECHANISM.statistic(MECHANISM.perturb(rng.choice(K, N, p=TRUTH), rng)) for _ in range(runs)], dtype=np.int64
    )


def test_a_channel_knows_that_a_report_may_support_none() -> None:
    assert CHANNEL.may_support_none
    assert not CHANNEL.one_symbol
    found = {
        name: protocol.mechanism.channel
        for name, keys in first_specs().items()
        if isinstance((protocol := build_protocol(spec(**keys))).mechanism, PureMechanism)
    }
    assert {"rr", "urr", "mangat", "ss", "uss", "oue", "olh"} <= set(found)
    assert not any(channel.may_support_none for channel in found.values())
    wide = np.full(1 << 16, 1 / (1 << 16))
    assert not Channel(0.5 + wide / 2, wide / 2, independent_bits=False).may_support_none


def test_counts_of_fewer_supports_than_reports_are_possible_and_of_more_are_not() -> None:
    cells = np.array([100, 20, 10, 5, 0, 0])
    DECODER.check(cells, 1_000)
    DECODER.check(cells, 135)
    with pytest.raises(ValueError, match="a report supports one symbol or none, but the counts sum to 135, n = 134"):
        DECODER.check(cells, 134)


@pytest.mark.parametrize("estimator", DECODER.estimators)
def test_each_estimator_gives_the_shares_and_intervals_that_cover(estimator: str) -> None:
    covered, errors = [], []
    for cells in windows(100, 1):
        (table,) = DECODER.tables(cells, N, estimator)
        assert table.low is not None
        assert table.high is not None
        covered.append((table.low <= TRUTH) & (table.high >= TRUTH))
        errors.append(table.values - TRUTH)
    assert np.mean(covered) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / 600)
    assert np.mean(errors, axis=0) == pytest.approx(np.zeros(K), abs=0.02)


def test_covariances_are_those_of_reports() -> None:
    values = np.array([CHANNEL.unbiased(cells, N) for cells in windows(2_000, 2)])
    expected = CHANNEL.covariance(TRUTH)(np.eye(K)) / N
    assert values.mean(axis=0) == pytest.approx(TRUTH, abs=4 * np.sqrt(expected.max() / 2_000))
    assert np.cov(values.T) == pytest.approx(expected, abs=0.12 * expected.max())


def test_forecast_counts_have_the_mean_and_variance_of_reports() -> None:
    rng = np.random.default_rng(3)
    drawn = np.array([draw_counts(CHANNEL, TRUTH, N, rng) for _ in range(2_000)])
    m = CHANNEL.support_probability(TRUTH)
    assert drawn.mean(axis=0) == pytest.approx(N * m, rel=0.02)
    assert drawn.var(axis=0) == pytest.approx(N * m * (1 - m), rel=0.15)
    assert dict(DECODER.describe(N, "auto"))["errors"].startswith("of auto at n = 5,000: expected l1 0.")


def p_values(shares: Floats) -> list[float]:
    rng, found = np.random.default_rng(4), []
    for _ in range(400):
        p_value = counts_p_value(CHANNEL, draw_counts(CHANNEL, shares, N, rng), N)
        assert p_value is not None
        found.append(p_value)
    return found


@pytest.mark.parametrize("shares", [TRUTH, np.eye(K)[0], falling_shares(K), np.full(K, 1 / K)])
def test_honest_windows_are_seldom_improbable(shares: Floats) -> None:
    found = np.array(p_values(shares))
    assert (found < 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert found.min() > 1e-6


@pytest.mark.parametrize("forged", [np.eye(K)[4], np.zeros(K)])
def test_forged_windows_are_improbable(forged: Floats) -> None:
    """A fifth of the reports name one symbol, or support none."""
    honest = draw_counts(CHANNEL, TRUTH, 4 * N // 5, np.random.default_rng(5))
    p_value = counts_p_value(CHANNEL, honest + np.rint(N / 5 * forged).astype(np.int64), N)
    assert p_value is not None
    assert p_value < 1e-6


def test_a_right_client_passes_and_one_that_never_says_no_fails() -> None:
    rng = np.random.default_rng(6)
    payloads = MECHANISM.perturb(rng.choice(K, N, p=TRUTH), rng)
    assert all(check.p_value > 1e-4 for check in checks(MECHANISM, TRUTH, payloads))
    assert min(check.p_value for check in checks(MECHANISM, TRUTH, payloads | np.uint32(1))) < 1e-9


def test_a_mechanism_with_other_cells_than_symbols_is_refused_before_any_report() -> None:
    class OfPayloads(DrawnBit):
        def __init__(self, sensitive: Mask, epsilon: float) -> None:
            super().__init__(sensitive, epsilon)
            self.statistic_size *= 2

    of = spec(domain={"size": K}, sensitive="all", mechanism={"name": "rr", "epsilon": 2.0})
    with pytest.raises(ValueError, match=r"rr has 12 cells for 6 symbols; a cell counts the reports that support its"):
        of_shares(of.variables[""], of.mechanism, OfPayloads)
