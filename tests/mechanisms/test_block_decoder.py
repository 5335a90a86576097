"""The tables of a number: mean, distribution and quantiles, from devices to intervals, and the test of the cells."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.encodings.number_encoding import NumberEncoding
from uldp.mechanisms.estimators.ems import GridChannel
from uldp.mechanisms.families.block.distribution import QUANTILE_LEVELS
from uldp.mechanisms.families.block.randomizer import Block, Width
from uldp.mechanisms.families.block.spec import MAX_EMS_BINS, BlockDecoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Basis, TableName

LOW, HIGH = -4.0, 20.0


def decoder(epsilon: float = 1.0, bins: int = 64, width: Width = "auto") -> BlockDecoder:
    return BlockDecoder(Block(epsilon, bins, width), LOW, HIGH)


def devices(decode: BlockDecoder, numbers: Floats, rng: np.random.Generator) -> Counts:
    """Return the cells of the reports of devices with these numbers."""
    block = decode.block
    protocol = LdpProtocol(NumberEncoding(LOW, HIGH, block.grid), block, decode)
    return block.statistic(protocol.perturb([Held(numbers, np.full(len(numbers), -1))], rng))


def law(block: Block, shares: Floats) -> Floats:
    p = GridChannel(block.grid, block.width, block.noise, of_bins=True).outputs(shares)
    total: Floats = p / p.sum()
    return total


def hump(bins: int) -> Floats:
    t = (np.arange(bins) + 0.5) / bins
    shares: Floats = t * (1 - t) ** 4 / np.sum(t * (1 - t) ** 4)
    return shares


@pytest.mark.parametrize("part", [0.8, 1.0])
def test_the_variance_of_spread_outputs_is_that_of_the_sample(part: float) -> None:
    """But not more than numbers of the range can have: half of them at either end."""
    block, n = decoder(2.0).block, 5
    outputs = np.rint(np.linspace(1 - part, part, n) * (block.statistic_size - 1)).astype(np.int64)
    mean = decoder(2.0).linear(np.bincount(outputs, minlength=block.statistic_size), n)
    step = (HIGH - LOW) / block.grid
    sample = step * np.std(outputs, ddof=1) / (1 - block.noise)
    most = step * math.sqrt(block.variance(np.array(0)) + (block.grid / 2) ** 2)
    assert np.sqrt(mean.variance * n) == pytest.approx(min(sample, most), rel=1e-3)
    assert (sample > most) == (part == 1)


@pytest.mark.parametrize("output", [0, 40, -1])
def test_one_report_has_the_variance_of_the_noise(output: int) -> None:
    """That of the number which it counts as, or of the nearest end of the range."""
    decode = decoder()
    cells = np.roll(np.eye(1, decode.block.statistic_size, dtype=np.int64)[0], output)
    mean = decode.linear(cells, 1)
    step = (HIGH - LOW) / 64
    nearest = (mean.values.clip(LOW, HIGH) - LOW) / step
    assert mean.variance == pytest.approx(decode.block.variance(nearest) * step**2)


@given(st.floats(0.1, 8.0), st.sampled_from([1, 2, 16]), st.data())
def test_the_law_of_a_number_has_the_cumulants_of_its_reports(epsilon: float, bins: int, data: st.DataObject) -> None:
    """Those of the outputs, at any distribution of the inputs; and the moments of the inputs follow from them."""
    width: Width = data.draw(st.sampled_from(["auto", "piecewise", "square-wave"]))
    decode = BlockDecoder(Block(epsilon, bins, width), LOW, HIGH)
    weights = np.array(data.draw(st.lists(st.floats(0.01, 1.0), min_size=bins + 1, max_size=bins + 1)))
    r, numbers = weights / weights.sum(), np.linspace(-12.0, 12.0, bins + 1)
    outputs, y = decode.block.law(r), decode.numbers - 8.0
    mean = float(outputs @ y)
    second, third = (float(outputs @ (y - mean) ** power) for power in (2, 3))
    moments = np.array([r @ numbers**power for power in (1, 2, 3)])
    found = decode.law.each(moments)
    assert (found.variance[0], found.third[0]) == pytest.approx((second, third), rel=1e-8, abs=1e-8 * second**1.5)
    assert decode.law.moments(mean, second, third) == pytest.approx(moments, rel=1e-6, abs=1e-6)


def test_ems_publishes_a_mean_a_distribution_and_quantiles() -> None:
    decode, n = decoder(), 10**5
    cells = np.random.default_rng(4).multinomial(n, law(decode.block, hump(64)))
    mean, share, quantile = decode.tables(cells, n, "ems")
    assert [table.name for table in (mean, share, quantile)] == [TableName.MEAN, TableName.SHARE, TableName.QUANTILE]
    assert (share.shape, share.keys, share.whole, share.basis) == ((64,), None, True, Basis.NORMAL)
    assert (quantile.shape, quantile.keys) == ((5,), ("0.1", "0.25", "0.5", "0.75", "0.9"))
    below = np.concatenate([[0], np.cumsum(share.values)])
    assert np.interp(quantile.values, np.linspace(LOW, HIGH, 65), below) == pytest.approx(QUANTILE_LEVELS)
    assert (np.diff(quantile.values) > 0).all()
    z = NormalDist().inv_cdf(0.975)
    for table, whole in ((share, (0, 1)), (quantile, (LOW, HIGH))):
        low, high = ends_of(table)
        np.testing.assert_allclose(high - low, 2 * z * table.stderr)
        assert ((whole[0] <= low) & (low <= table.values) & (table.values <= high) & (high <= whole[1])).all()
    (alone,) = decode.tables(cells, n, "empirical")
    assert (alone.values[0], alone.stderr[0]) == (mean.values[0], mean.stderr[0])


@pytest.mark.parametrize("forged", ["one cell", "upper end"])
def test_forged_outputs_are_improbable(forged: str) -> None:
    decode, honest, fakes = decoder(bins=1024), 10**5, 5000
    rng = np.random.default_rng(8)
    cells = devices(decode, rng.uniform(LOW, HIGH, honest), rng)
    assert decode.p_values(cells, honest)[Flag.IMPROBABLE_COUNTS] > 0.05
    if forged == "one cell":
        cells[-1] += fakes
    else:
        cells[-fakes // 100 :] += 100
    assert decode.p_values(cells, honest + fakes)[Flag.IMPROBABLE_COUNTS] < 1e-6


def test_ems_needs_a_matrix_of_the_bins() -> None:
    assert decoder(bins=MAX_EMS_BINS).estimators == ("auto", "empirical", "ems")
    decode = decoder(bins=MAX_EMS_BINS + 1)
    assert decode.estimators == ("auto", "empirical")
    with pytest.raises(ValueError, match="no estimator 'ems'; choose one of auto, empirical"):
        decode.tables(np.zeros(decode.block.statistic_size, dtype=np.int64), 0, "ems")
