"""Do devices report their own kept responses? Tests of two reports of each device, all of one value.

A device of a ``WithMemory`` draws a permanent response once, and noise for each report on top. So two reports of a
device agree more often than those of two devices, and less often than copies: how often follows from both laws.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.random import default_rng
from scipy import special

from uldp.mechanisms.inference.goodness_of_fit import Check, binomial, support_matrices
from uldp.mechanisms.protocol.mechanism import Mechanism, WithMemory
from uldp.mechanisms.verification.privacy_loss import Inputs, inputs_of_parts
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads

_PAIRS = "pairs"


def kept_checks(
    mechanism: WithMemory, inputs: Inputs, first: Payloads, other: Payloads, seed: int = 0
) -> Iterator[Check]:
    """Test whether two reports of each of n devices come from one permanent response and two draws of noise.

    - Uniform noise: the number of devices whose reports are equal is binomial.
    - Bits of a symbol: the number of devices whose reports both set a bit is binomial, for each bit, and over all bits
      of other sensitive symbols together.
    - Strata: no device changes its part; then the tests of each part.
    - Others: in how many bits, or signs of sums, the reports of a device differ, beside those of as many devices that
      this function draws with ``seed``.

    Args:
        inputs: The distribution of the symbols of the devices, each of which keeps its own; or the symbol of a string;
            or, of strata of strings, its symbol in each part.
        first: A possible report of each of n devices.
        other: Another report of each of them, in this order.
    """
    if mechanism.parts:
        yield from _of_strata(mechanism, inputs, first, other, seed)
    elif (probability := mechanism.renewed.equal_probability(mechanism, inputs)) is not None:
        equal = (first == other).reshape(len(first), -1).all(axis=1).sum(keepdims=True)
        m = np.array([probability])
        yield binomial("equal reports", lambda _: "the reports are equal", equal, len(first), m, _PAIRS)
    elif (twice := mechanism.renewed.twice_probability(mechanism, cast(Floats, inputs))) is not None:
        yield from _of_bits(mechanism.bare, cast(Floats, inputs), twice, first, other)
    else:
        yield _beside_drawn(mechanism, inputs, first, other, seed)


def _of_bits(once: Mechanism, r: Floats, expected: Floats, first: Payloads, other: Payloads) -> Iterator[Check]:
    pairs = zip(support_matrices(once, first), support_matrices(once, other), strict=True)
    both: Counts = sum((one.astype(np.int64) * two).sum(axis=0) for one, two in pairs)
    n = len(first)
    yield binomial("bits set twice", lambda bit: f"bit {bit} is set twice", both, n, expected, _PAIRS)
    others = (r[: len(expected)] == 0) & cast(Mask, once.sensitive)
    if others.any():  # their probabilities are one and the same
        total = np.array([both[others].sum()])
        mean = np.array([expected[others].mean()])
        yield binomial("other bits set twice", lambda _: "one is set twice", total, n * int(others.sum()), mean, _PAIRS)


def _of_strata(strata: Mechanism, inputs: Inputs, first: Payloads, other: Payloads, seed: int) -> Iterator[Check]:
    own = [list(strata.split_payloads(payloads)) for payloads in (first, other)]
    parts = np.zeros((2, len(first)), np.int64)
    for drawn, split in zip(parts, own, strict=True):
        for number, rows, _ in split:
            drawn[rows] = number
    stays, name = parts[0] == parts[1], f"kept {strata.noun}s"
    changed = np.array([np.count_nonzero(~stays)])
    yield binomial(name, lambda _: f"the {strata.noun} changes", changed, len(first), np.zeros(1), _PAIRS)
    of_parts = zip(*own, inputs_of_parts(strata, inputs), strict=True)
    for (number, rows, one), (_, others, two), of_part in of_parts:
        one, two = one[stays[rows]], two[stays[others]]
        if len(one) and of_part is not None:
            part = cast(WithMemory, strata.parts[number])
            for check in kept_checks(part, of_part, one, two, seed):
                yield replace(check, name=f"{check.name} of {strata.noun} {number}")


def _beside_drawn(mechanism: WithMemory, inputs: Inputs, first: Payloads, other: Payloads, seed: int) -> Check:
    """Test whether the reports of a device differ as much as those of devices that this function draws."""
    rng, n = default_rng(seed), len(first)
    symbols = np.full(n, inputs) if isinstance(inputs, int) else rng.choice(len(inputs), n, p=inputs)
    kept = mechanism.permanent(symbols, rng)
    found = mechanism.renewed.differences(first, other)
    drawn = mechanism.renewed.differences(mechanism.again(kept, rng), mechanism.again(kept, rng))
    error = math.sqrt((found.var() + drawn.var()) / n)
    z = float(found.mean() - drawn.mean()) / error if error else 0.0
    text = f"the reports of a device differ in {found.mean():.2f} bits, those of drawn devices in {drawn.mean():.2f}"
    return Check("differing bits", f"difference {z:+.2f} standard errors", 2 * float(special.ndtr(-abs(z))), text)
