"""Two reports of each device come from its one kept response: right clients pass, and those without a response fail."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from tests import build
from tests.mechanisms.protocols import Example, examples, of_one_device
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.mechanisms.verification.kept_responses import kept_checks
from uldp.mechanisms.verification.privacy_loss import Inputs
from uldp.schemas.arrays import Payloads, Values

KEPT = {name: example for name, example in examples().items() if example.protocol.mechanism.memory}
N = 1_000


def devices(example: Example, seed: int, n: int = N) -> tuple[WithMemory, Inputs, Values]:
    """The mechanism of an example, the inputs of devices that all hold one thing, and the symbols that they keep."""
    protocol, rng = example.protocol, default_rng(seed)
    if "levels" in example.spec.mechanism.name:
        protocol = protocol.at("open")
    held = of_one_device(example, rng)
    mechanism = protocol.mechanism
    assert isinstance(mechanism, WithMemory)
    many = [Held(of.values[np.zeros(n, np.int64)], np.repeat(of.tags, n)) for of in held]
    symbols = protocol.encoding.encode(many, rng)
    if mechanism.few_symbols:
        return mechanism, protocol.encoding.law(held, mechanism.size), symbols
    if mechanism.parts:
        assert isinstance(protocol.encoding, StrataEncoding)
        return mechanism, protocol.encoding.of_each_part(held)[:, 0].astype(np.float64), symbols
    return mechanism, int(symbols[0]), symbols


def p_value(mechanism: WithMemory, inputs: Inputs, first: Payloads, other: Payloads) -> float:
    found = list(kept_checks(mechanism, inputs, first, other))
    return min(1.0, len(found) * min(check.p_value for check in found))


@pytest.mark.parametrize("name", KEPT)
def test_a_device_that_keeps_its_response_passes(name: str) -> None:
    mechanism, inputs, symbols = devices(KEPT[name], 2)
    rng = default_rng(3)
    kept = mechanism.permanent(symbols, rng)
    assert p_value(mechanism, inputs, mechanism.again(kept, rng), mechanism.again(kept, rng)) > 1e-3


@pytest.mark.parametrize("name", KEPT)
def test_a_device_that_sends_its_first_report_again_fails(name: str) -> None:
    mechanism, inputs, symbols = devices(KEPT[name], 2)
    reports = mechanism.perturb(symbols, default_rng(3))
    assert p_value(mechanism, inputs, reports, reports) < 1e-5


MECHANISMS = ["rr", "oue", "ss", "olh", "hrr", "she", "bit-flip"]


def without_a_response(mechanism: WithMemory, symbols: Values, rng: Generator) -> Payloads:
    return mechanism.perturb(symbols, rng)


def of_another_device(mechanism: WithMemory, symbols: Values, rng: Generator) -> Payloads:
    kept = mechanism.permanent(symbols, default_rng(4))
    return mechanism.again(np.roll(kept, 1, axis=0), rng)


@pytest.mark.parametrize("client", [without_a_response, of_another_device])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_device_that_keeps_no_response_of_its_own_fails(
    name: str, client: Callable[[WithMemory, Values, Generator], Payloads]
) -> None:
    bits = {"bits": 4} if name == "bit-flip" else {}
    spec = build.spec(domain={"size": 8}, mechanism={"name": name, "epsilon": 2.0, "lasting_epsilon": 3.0, **bits})
    protocol = build_protocol(spec)
    mechanism, held = protocol.mechanism, [Held(np.array([3]), np.array([-1]))]
    assert isinstance(mechanism, WithMemory)
    many = [Held(np.full(N, 3), np.full(N, -1))]
    symbols, inputs = protocol.encoding.encode(many, default_rng(1)), protocol.encoding.law(held, mechanism.size)
    first = mechanism.again(mechanism.permanent(symbols, default_rng(4)), default_rng(5))
    assert p_value(mechanism, inputs, first, client(mechanism, symbols, default_rng(6))) < 1e-5


def test_a_device_that_changes_its_attribute_fails() -> None:
    mechanism, inputs, symbols = devices(KEPT["record with permanent responses"], 2)
    kept = mechanism.permanent(symbols, default_rng(3))
    first = mechanism.again(kept, default_rng(4))
    moved, *_ = kept_checks(mechanism, inputs, first, np.roll(first, 1, axis=0))
    assert (moved.name, moved.p_value) == ("kept attributes", 0.0)
    assert moved.finding.startswith("the attribute changes in ")
