"""The law of what is possible, for every mechanism: no payload is farther out than honest devices send.

A forged report weighs the most that a possible payload allows. So ``possible`` may admit no payload that is farther out
than those of all but a share ``IMPOSSIBLE_TAIL`` of honest reports, whatever their true values are. Out means:

- A symbol is as far out as it is rare. On a line (``geometric``), it is as rare as all symbols from it to its end.
- Bits are as far out as their number is high, or low.
- The integers of a histogram are as far out as the one that is farthest from 0, and as their sum.
- Sets of one size have no far ones: all are alike. The seed of a hash is as far out as it is rare.

The law is not about the probability of one payload: of a thousand bits, each payload has almost none. Nor is it about
a likelihood ratio to the most probable payload: of many bits, this has none set where honest ones have some.

``possible`` halves its tail for each side, and bounds sums; so it may admit some that are a hundred times as rare. In a
record, a report is held against those about its attribute, because forgers choose the attribute.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import examples, first_specs
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.families.local_hashing.bloom import BloomFilter
from uldp.mechanisms.families.local_hashing.cohorts import CohortHashing, CohortSetHashing
from uldp.mechanisms.families.local_hashing.randomizer import SeededHashing
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.summation.randomizer import LARGEST_ENTRY, Summation
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.kernels.hashing import SEEDS
from uldp.mechanisms.numbers.outputs import NumberDecoder
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.mechanism import IMPOSSIBLE_TAIL, Mechanism
from uldp.mechanisms.protocol.noise import BitNoise
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Floats, Mask, Payloads

#: Payloads, and the share of honest reports that are as far out, at most.
Far = tuple[Payloads, Floats]

#: The epsilons of wide domains. One arm of a hybrid alone is better outside of a range, and its spec says so.
EPSILONS = (0.5, 8.0, 20.0)
EPSILONS_OF = {"hybrid": (0.8, 2.0, 6.0)}


def mechanisms() -> dict[str, Mechanism]:
    """Those of the examples, and each again with a wide domain and several epsilons."""
    found = {name: example.protocol.mechanism for name, example in examples().items()}
    for name, keys in first_specs().items():
        if "epsilon" in keys["mechanism"]:
            for epsilon in EPSILONS_OF.get(keys["mechanism"]["name"], EPSILONS):
                found[f"{name} at {epsilon:g}"] = build_protocol(build.spec(**_wide(keys, epsilon))).mechanism
    return found


def _wide(keys: dict[str, Any], epsilon: float) -> dict[str, Any]:
    domain = dict(keys["domain"])
    mechanism = {key: value for key, value in keys["mechanism"].items() if key != "lasting_epsilon"}
    mechanism["epsilon"] = epsilon
    if domain.get("size", 0) > 2:
        domain["size"] = 64
    wider = {"bits": 64} if mechanism["name"] in ("bit-flip", "bloom") else {}
    return {**keys, "domain": domain, "mechanism": mechanism | wider}


MECHANISMS = mechanisms()


def far_payloads(mechanism: Mechanism) -> Iterator[tuple[Mechanism, Far]]:
    """Yield payloads from near to far, for each part of a mechanism."""
    if isinstance(mechanism, Strata):
        for part in mechanism.parts:
            yield from far_payloads(part)
        return
    mechanism = mechanism.bare
    if isinstance(mechanism, Geometric):
        yield mechanism, _on_a_line(mechanism)
    elif isinstance(mechanism, Summation):
        yield mechanism, _one_entry(mechanism)
        yield mechanism, _all_entries(mechanism)
    elif isinstance(mechanism, BitNoise):
        yield mechanism, _numbers_of_bits(mechanism)
    elif isinstance(mechanism, SubsetSelection):
        v = int(mechanism.sensitive.sum())
        yield mechanism, (_bits(mechanism.sensitive, range(v + 1)), np.arange(v + 1) == mechanism.chosen)
    elif isinstance(mechanism, SeededHashing):
        # Whoever searches all seeds for one that supports many symbols, finds one that so many devices draw.
        last = (mechanism.buckets - 1).to_bytes(2, "little")
        payloads = np.frombuffer(bytes(6) + bytes(4) + last, dtype=np.uint8).reshape(2, 6)
        yield mechanism, (payloads, np.full(2, 1 / SEEDS))
    elif isinstance(mechanism, CohortHashing | CohortSetHashing):
        size = mechanism.statistic_size  # every bucket is that of some string, and so has at least its even share
        yield mechanism, (np.arange(size, dtype=np.uint32), np.full(size, 1 / size))
    else:
        yield mechanism, _symbols(mechanism)


def _laws(mechanism: Mechanism) -> Floats:
    """The probability of each symbol, for some true values: all, or the ends and the middle of many."""
    many = mechanism.size > 100
    found = []
    for true in (0, mechanism.size // 2, mechanism.size - 1) if many else range(mechanism.size):
        law = mechanism.law((np.arange(mechanism.size) == true).astype(np.float64))
        assert law is not None, f"say in this file how far out the payloads of {type(mechanism).__name__} are"
        found.append(law)
    return np.array(found)


def _symbols(mechanism: Mechanism) -> Far:
    laws = _laws(mechanism)
    return np.arange(laws.shape[1], dtype=np.uint32), laws.max(axis=0)


def _on_a_line(mechanism: Geometric) -> Far:
    laws = _laws(mechanism)
    low, high = laws.cumsum(axis=1).max(axis=0), laws[:, ::-1].cumsum(axis=1).max(axis=0)[::-1]
    return np.arange(laws.shape[1], dtype=np.uint32), np.minimum(low, high)


def _bits(settable: Mask, numbers: range) -> Payloads:
    """Payloads with so many of the bits that reports of protected values may set."""
    payloads = np.packbits(np.cumsum(settable) * settable <= np.array(numbers)[:, np.newaxis], axis=1)
    return payloads & np.packbits(settable)


def _numbers_of_bits(mechanism: BitNoise) -> Far:
    unset, q = mechanism.bit_law
    places = np.arange(mechanism.bits)
    if isinstance(mechanism, BloomFilter):
        own = [places < number for number in range(1, mechanism.hashes + 1)]
    else:
        own = [places == true for true in range(mechanism.size)]
    settable = mechanism.sensitive if isinstance(mechanism, UnaryEncoding) else np.ones(mechanism.bits, np.bool_)
    low, high = np.zeros((2, mechanism.bits + 1))
    for law in [_total(np.where(mine, 1 - unset, q)) for mine in own]:
        low = np.maximum(low, law.cumsum())
        high = np.maximum(high, law[::-1].cumsum()[::-1])
    numbers = range(int(settable.sum()) + 1)
    payloads = _bits(settable, numbers)
    assert mechanism.form.width is not None
    head = np.zeros((len(payloads), mechanism.form.width - payloads.shape[1]), dtype=np.uint8)
    return np.concatenate([head, payloads], axis=1), np.minimum(low, high)[: len(numbers)]


def _total(bits: Floats) -> Floats:
    law = np.ones(1)
    for bit in bits.tolist():
        law = np.convolve(law, [1 - bit, bit])
    return law


def _one_entry(mechanism: Summation) -> Far:
    """One entry of a histogram from end to end, and all others 0."""
    entries = np.arange(-LARGEST_ENTRY - 1, LARGEST_ENTRY + 1)
    payloads = np.zeros((len(entries), mechanism.size), dtype="<i2")
    payloads[:, -1] = entries
    assert mechanism.guarantee.epsilon is not None
    a = math.exp(-mechanism.guarantee.epsilon / 2)
    noise = np.where(entries > 0, entries - 1, -entries)
    # The probability that the noise of one of all entries is as far, either way.
    return payloads.view(np.uint8), np.minimum(2 * mechanism.size * a**noise / (1 + a), 1.0)


def _all_entries(mechanism: Summation) -> Far:
    """All entries alike, and the probability of a sum of noises as far, by convolution."""
    assert mechanism.guarantee.epsilon is not None
    a = math.exp(-mechanism.guarantee.epsilon / 2)
    most, k = math.ceil(40 / -math.log(a)), mechanism.size  # the rest has a probability below e^-40
    law = np.ones(1)
    for _ in range(k):
        law = np.convolve(law, (1 - a) / (1 + a) * a ** np.abs(np.arange(-most, most + 1)))
    at_least = law[::-1].cumsum()[::-1][k * most :]  # from a distance of 0
    entries = np.arange(-most, most + 1)
    payloads = np.repeat(entries[:, np.newaxis], k, axis=1).astype("<i2")
    return payloads.view(np.uint8), np.minimum(at_least, 1.0)[np.minimum(np.abs(k * entries - 1), k * most)]


#: Examples whose reports are all about one variable.
WHOLE = [name for name, of in examples().items() if not isinstance(of.protocol.decoder, StrataDecoder)]


@pytest.mark.parametrize("name", WHOLE)
def test_the_heaviest_payload_moves_an_estimate_as_far_as_a_check_says(name: str) -> None:
    example, n = examples()[name], 20_000
    decoder, mechanism, rng = example.protocol.decoder, example.protocol.mechanism, np.random.default_rng(5)
    honest = mechanism.perturb(example.protocol.encoding.encode(example.hold(rng, n), rng), rng)
    payloads = np.concatenate([honest[:200], *possible_payloads(mechanism)])
    cells = mechanism.statistic(honest)
    before = decoder.linear(cells, n).values
    added = mechanism.tally([payloads], np.arange(len(payloads)), len(payloads))
    moved = max(float(np.abs(decoder.linear(cells + as_dense(of), n + 1).values - before).max()) for of in added)
    unit = 1.0
    if isinstance(decoder, NumberDecoder):
        unit = decoder.high - decoder.low
    (claimed,) = re.findall(
        r"by up to ([0-9.e+-]+)", dict(decoder.describe(n, decoder.estimators[0]))["heaviest"].split(", and")[0]
    )
    # A report moves the estimate from where it is: by as much as the way from one end to the other, or by half of it.
    assert 0.3 < 100 * moved / unit / float(claimed) < 1.06


def possible_payloads(mechanism: Mechanism) -> Iterator[Payloads]:
    if not isinstance(mechanism, Strata):
        for of, (payloads, _) in far_payloads(mechanism):
            yield payloads[of.possible(payloads)][:: 1 + len(payloads) // 5000]


@pytest.mark.parametrize("name", MECHANISMS)
def test_payloads_are_possible_if_honest_ones_are_as_far_out(name: str) -> None:
    for mechanism, (payloads, share) in far_payloads(MECHANISMS[name]):
        possible, improbable = mechanism.inspect(payloads)
        assert (mechanism.possible(payloads) == possible).all()
        assert possible.any()
        assert share[possible].min() > IMPOSSIBLE_TAIL / 100
        assert share[~possible].max(initial=0) <= IMPOSSIBLE_TAIL
        assert improbable[~possible & (share > 0)].all()
