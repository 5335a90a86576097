"""A few bits of a unary encoding: the designs, the bits of each, and what is estimated from them."""

import math
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.bit_flip.spec import DesignDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy
from uldp.schemas.flags import Flag
from uldp.schemas.framing import report_store


def keys(bits: int, size: int = 10, **more: Any) -> dict[str, Any]:
    return {"domain": {"size": size}, "mechanism": {"name": "bit-flip", "epsilon": 1.0, "bits": bits} | more}


def protocol(bits: int, size: int = 10, **more: Any) -> LdpProtocol:
    return build_protocol(build.spec(**keys(bits, size, **more)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("w", [1, 2, 5])
def test_a_design_of_one_bit_has_all_of_epsilon_and_others_half_for_each(w: int, epsilon: float) -> None:
    # Two inputs differ in two bits, or in the one bit of a design.
    mechanism, root = FlippedBits(w, epsilon), math.exp(epsilon / min(w, 2))
    assert mechanism.channel.p == pytest.approx(root / (root + 1), rel=1e-12)
    assert mechanism.channel.q == pytest.approx(1 / (root + 1), rel=1e-12)
    assert mechanism.guarantee == Guarantee(Privacy.LDP, epsilon)


def test_possible_payloads_name_a_design_and_have_zero_padding() -> None:
    mechanism = protocol(3).mechanism
    payloads = np.array([[0, 0, 0xE0], [3, 0, 0x80], [0, 0, 0xF0], [3, 0, 0x40], [4, 0, 0]], dtype=np.uint8)
    assert mechanism.possible(payloads).tolist() == [True, True, False, False, False]


def test_a_count_has_the_number_of_reports_of_its_design() -> None:
    decoder = protocol(2, 4).decoder
    cells = np.array([100, 60, 40, 300, 150, 0])  # n of a design, and its bits
    linear = decoder.linear(cells, 400)
    f = 1 / (math.exp(0.5) + 1)
    assert linear.n.tolist() == [100, 100, 300, 300]
    assert linear.values == pytest.approx((np.array([0.6, 0.4, 0.5, 0.0]) - f) / (1 - 2 * f))


def test_a_design_without_reports_excludes_no_share() -> None:
    decoder = protocol(2, 4).decoder
    (table,) = decoder.tables(np.array([0, 0, 0, 300, 150, 100]), 300, "auto")
    assert [end[:2].tolist() for end in ends_of(table)] == [[0, 0], [1, 1]]
    assert table.values.sum() == pytest.approx(1)
    assert np.isfinite(table.stderr).all()


def test_forged_designs_and_bits_are_flagged() -> None:
    decoder = protocol(2, 4).decoder
    assert isinstance(decoder, DesignDecoder)
    honest = decoder.p_values(np.array([500, 200, 220, 500, 210, 230]), 1000)
    assert min(honest.values()) > 0.01
    one_design = decoder.p_values(np.array([1000, 400, 440, 0, 0, 0]), 1000)
    assert one_design[Flag.IMPROBABLE_STRATA] < 1e-9
    no_bits = decoder.p_values(np.array([500, 0, 0, 500, 210, 230]), 1000)
    assert no_bits[Flag.IMPROBABLE_COUNTS] < 1e-9


def test_a_device_keeps_its_design_whatever_it_holds() -> None:
    spec = build.spec(**keys(2, 40, lasting_epsilon=2.0), window={"size": "1d"})
    device = Device(spec, {}, ledger=MemoryLedger())
    day = 86_400_000
    reports = [device.report(number % 7, event_time_ms=build.START + number * day) for number in range(30)]
    assert len({report_store().decode(data)[1]["payload"][:2] for data in reports}) == 1
