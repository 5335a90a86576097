"""SHE with a permanent response: what is drawn, what is kept, and the moments of reports."""

import math
from typing import cast

import numpy as np
import pytest

from tests import build
from tests.build import START
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.summation.randomizer import Summation, noise_variance
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Counts, Floats, Packed, Payloads
from uldp.schemas.framing import report_store


def kept_sums(size: int, epsilon: float, lasting: float) -> Memoized:
    return Memoized(inner=FlippedBits(size, lasting), once=Summation(size, epsilon))


N, SIZE = 60_000, 3


def entries(payloads: Payloads) -> Counts:
    """Shape (n, size)."""
    return payloads.view("<i2").astype(np.int64)


def test_a_device_keeps_the_flipped_bits_alone() -> None:
    mechanism, flip = kept_sums(SIZE, 1.0, 2.0), 1 / (1 + math.e)
    kept = mechanism.permanent(np.full(N, 1), np.random.default_rng(1))
    assert kept.shape == (N, 1)
    ones = np.unpackbits(cast(Packed, kept), axis=1, count=SIZE).sum(axis=0, dtype=np.int64)
    expected = N * np.where(np.arange(SIZE) == 1, 1 - flip, flip)
    assert np.abs(ones - expected).max() <= 5 * math.sqrt(N * flip * (1 - flip))
    assert kept_sums(100_000, 1.0, 2.0).permanent(np.zeros(1, np.int64), np.random.default_rng(1)).nbytes == 12_500


@pytest.mark.parametrize(("lasting", "epsilon"), [(2.0, 1.0), (4.0, 0.5), (1.0, 1.0)])
def test_reports_have_the_moments_of_the_law_and_share_those_of_the_flips(lasting: float, epsilon: float) -> None:
    mechanism, rng = kept_sums(SIZE, epsilon, lasting), np.random.default_rng(2)
    kept = mechanism.permanent(np.full(N, 1), rng)
    one, other = (entries(mechanism.again(kept, rng)) - (np.arange(SIZE) == 1) for _ in range(2))
    a = math.exp(-lasting / 2)

    def z(samples: Floats | Counts, mean: float) -> float:
        errors = samples.std(axis=0) / math.sqrt(N)
        return float(np.abs((samples.mean(axis=0) - mean) / errors).max())

    assert z(one, 0.0) <= 5
    assert z(one**2, noise_variance(epsilon)) <= 5
    assert z(one * other, a / (1 - a) ** 2) <= 5  # half of the noise of a histogram under the lasting budget
    assert z(one * np.roll(other, 1, axis=1), 0.0) <= 5  # the entries of a response are independent
    assert a / (1 - a) ** 2 == pytest.approx(noise_variance(lasting) / 2, rel=1e-12)


def test_a_device_with_equal_budgets_sends_the_bits_that_it_keeps() -> None:
    spec = build.spec(domain={"size": 11}, mechanism={"name": "she", "epsilon": 1.0, "lasting_epsilon": 1.0})
    ledger, sent = MemoryLedger(), []
    for hours in range(8):  # each time, the device has been restarted
        message = Device(spec, {}, ledger=ledger).report(5, START + hours * build.HOUR)
        sent.append(np.frombuffer(report_store().decode(message)[1]["payload"], "<i2"))
    assert len({tuple(entries > 0) for entries in sent}) == 1
    assert len({tuple(entries) for entries in sent}) == 8
    with ledger.change() as content:
        assert sorted(map(len, content.kept.values())) == [
            3,
            8,
        ]  # 11 bits behind a byte, and the time of the last report
