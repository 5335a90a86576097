"""What was received of each value: the share of reports that support it, of every mechanism that has such."""

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from tests.mechanisms.protocols import examples
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.encoding import Held

N = 4_000
#: Every mechanism of one variable whose cells are of symbols: those of numbers, sets and parts have no such shares.
SUPPORTING = {
    name: each
    for name, each in examples().items()
    if isinstance(each.protocol.decoder, PureDecoder) or each.spec.mechanism.name == "metric"
}


@pytest.mark.parametrize("name", SUPPORTING)
def test_most_reports_support_the_value_that_all_users_hold(name: str) -> None:
    protocol, size = SUPPORTING[name].protocol, SUPPORTING[name].spec.size
    held = Held(np.full(N, size - 1), np.full(N, -1))
    payloads = protocol.perturb([held], default_rng(7))
    received = protocol.decoder.received(protocol.mechanism.statistic(payloads), N)
    assert received is not None
    assert received.shape == (size,)
    assert 0 <= received.min() <= received.max() <= 1
    assert int(np.argmax(received)) == size - 1


@pytest.mark.parametrize(
    ("mechanism", "cells", "shares"),
    [("rr", [6, 3, 1, 0, 0], [0.6, 0.3, 0.1, 0, 0]), ("oue", [9, 9, 1, 0, 5], [0.9, 0.9, 0.1, 0, 0.5])],
)
def test_it_is_counts_over_n(mechanism: str, cells: list[int], shares: list[float]) -> None:
    decoder = build_protocol(build.spec(mechanism={"name": mechanism, "epsilon": 1.0})).decoder
    received = decoder.received(np.array(cells), 10)
    assert received is not None
    assert received.tolist() == pytest.approx(shares)


@pytest.mark.parametrize("name", sorted(examples().keys() - SUPPORTING.keys()))
def test_other_mechanisms_have_none(name: str) -> None:
    decoder = examples()[name].protocol.decoder
    assert decoder.received(np.zeros(examples()[name].protocol.mechanism.statistic_size, dtype=np.int64), 1) is None
