"""Reports that support one symbol or none, as of a package from outside: they are counted, estimated and forecast."""

import numpy as np
import pytest

from tests.build import spec
from tests.mechanisms.protocols import first_specs
from tests.outside.drawn_bit.drawn_bit import DrawnBit
from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.inference.forecast import draw_counts
from uldp.mechanisms.inference.goodness_of_fit import checks
from uldp.mechanisms.inference.plausibility import counts_p_value
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats, Mask

K, N = 6, 5_000
MECHANISM = DrawnBit(np.ones(K, dtype=np.bool_), 2.0)
CHANNEL = MECHANISM.channel
DECODER = PureDecoder(MECHANISM, Pum(np.ones(K, dtype=np.bool_), (), np.empty((0, K)), np.empty(0)))
TRUTH = np.array([0.5, 0.3, 0.15, 0.05, 0.0, 0.0])


def test_a_channel_knows_that_a_report_may_support_none() -> None:
    assert CHANNEL.may_support_none
    assert not CHANNEL.one_symbol
    found = {
        name: protocol.mechanism.channel
        for name, keys in first_specs().items()
        if isinstance((protocol := build_protocol(spec(**keys))).mechanism, PureMechanism)
    }
    assert {"rr", "urr", "mangat", "ss", "uss", "oue", "olh"} <= set(found)
    none = [name for name, channel in found.items() if channel.may_support_none]
    assert not none, f"reports of {none} may support no symbol: no mechanism here did; leave them out of this list"
    wide = np.full(1 << 16, 1 / (1 << 16))
    assert not Channel(0.5 + wide / 2, wide / 2, independent_bits=False).may_support_none


def test_counts_of_fewer_supports_than_reports_are_possible_and_of_more_are_not() -> None:
    cells = np.array([100, 20, 10, 5, 0, 0])
    DECODER.check(cells, 1_000)
    DECODER.check(cells, 135)
    with pytest.raises(ValueError, match="a report supports one symbol or none, but the counts sum to 135, n = 134"):
        DECODER.check(cells, 134)


def test_forecast_counts_have_the_mean_and_variance_of_reports() -> None:
    rng = np.random.default_rng(3)
    drawn = np.array([draw_counts(CHANNEL, TRUTH, N, rng) for _ in range(2_000)])
    m = CHANNEL.support_probability(TRUTH)
    assert drawn.mean(axis=0) == pytest.approx(N * m, rel=0.02)
    assert drawn.var(axis=0) == pytest.approx(N * m * (1 - m), rel=0.15)
    assert dict(DECODER.describe(N, "auto"))["errors"].startswith("of auto at n = 5,000: expected l1 0.")


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
