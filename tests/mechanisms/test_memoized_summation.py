"""SHE with a permanent response: what is drawn, what is kept, and the moments of reports."""

import math
from typing import cast

import numpy as np
import pytest

from tests import build
from tests.build import START
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.summation.decoder import NoisyHistogram
from uldp.mechanisms.families.summation.randomizer import Summation, noise_variance
from uldp.mechanisms.protocol.mechanism import WithMemory
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


def test_an_attribute_of_a_record_keeps_its_bits() -> None:
    app = {"name": "she"}
    hours = {"name": "duchi"}
    domain = {"record": {"app": {"size": 11}, "hours": {"number": {"low": 0, "high": 24}}}}
    of = {"name": "sample-one", "epsilon": 1.0, "lasting_epsilon": 1.0, "of": {"app": app, "hours": hours}}
    mechanism = build_protocol(build.spec(domain=domain, mechanism=of)).mechanism
    assert isinstance(mechanism, WithMemory)
    rng = np.random.default_rng(4)
    kept = mechanism.permanent(np.full(500, 3), rng)
    reports = [mechanism.again(kept, rng) for _ in range(2)]
    assert all(mechanism.possible(report).all() for report in reports)
    one, other = (entries(cast(Packed, report)[:, 2:24].copy()) for report in reports)
    assert ((one > 0) == (other > 0)).all()
    assert (one != other).any()


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at most the lasting one"):
        kept_sums(3, 1.0, 0.9)
    with pytest.raises(ValueError, match=r"0\.0025 or more"):
        kept_sums(3, 0.002, 1.0)
    # The flips of a report take one input more, which is no symbol.
    with pytest.raises(ValueError, match="outside of the 3 symbols"):
        kept_sums(3, 1.0, 2.0).permanent(np.array([3]), np.random.default_rng(1))
    with pytest.raises(ValueError, match="outside of the 3 symbols"):
        Summation(3, 1.0).perturb(np.array([3]), np.random.default_rng(1))


def test_the_law_of_a_report_has_the_cumulants_of_its_entries() -> None:
    """Of a sum of two entries with noise from -60 to 60, beyond which there is nearly none."""
    epsilon, r, w = 1.5, np.array([0.6, 0.3, 0.1]), np.array([[1.0, 0], [-2, 0], [0, 3]])
    law = NoisyHistogram(3, noise_variance(epsilon), None)
    a, x = math.exp(-epsilon / 2), np.arange(-60, 61)
    noise = (1 - a) / (1 + a) * a ** np.abs(x)
    for column, found in zip(w.T, np.transpose(law.sums(w, r)), strict=True):
        scores = column[:, np.newaxis, np.newaxis] + column[0] * x[:, np.newaxis] + (column[1] + column[2]) * x
        chance = r[:, np.newaxis, np.newaxis] * np.outer(noise, noise)
        centred = scores - r @ column
        assert found[:2] == pytest.approx([(chance * centred**2).sum(), (chance * centred**3).sum()], rel=1e-6)
    for single, of_sum in zip(law.each(r), law.sums(np.eye(3), r), strict=True):
        np.testing.assert_allclose(single, of_sum)
    covariance = law.times(np.eye(3), r)
    np.testing.assert_allclose(covariance, noise_variance(epsilon) * np.eye(3) + np.diag(r) - np.outer(r, r))
