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
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism, WithMemory
from uldp.mechanisms.protocol.noise import BitNoise, UniformNoise
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.mechanisms.verification.privacy_loss import Inputs, inputs_of_parts
from uldp.schemas.arrays import Counts, Floats, Packed, Payloads

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
    elif isinstance(mechanism, Memoized) and mechanism.uniform is not None:
        equal = (first == other).reshape(len(first), -1).all(axis=1).sum(keepdims=True)
        m = np.array([_equal(mechanism, mechanism.uniform, inputs)])
        yield binomial("equal reports", lambda _: "the reports are equal", equal, len(first), m, _PAIRS)
    elif isinstance(mechanism, Memoized) and mechanism.channel is not None:
        yield from _of_bits(mechanism, cast(Floats, inputs), first, other)
    else:
        yield _beside_drawn(mechanism, inputs, first, other, seed)


def _equal(mechanism: Memoized, once: UniformNoise, inputs: Inputs) -> float:
    """Return the probability that two reports of a device are equal.

    With rho for the probability of ``again`` to replace a payload, P for the law of the response, and u for that of
    uniform payloads, it is (1 - rho)^2 + 2 rho (1 - rho) E_P[u] + rho^2 sum u^2.
    """
    rho = float(mechanism.noise[0])
    inner, report = (None if isinstance(inputs, int) else each.law(inputs) for each in (mechanism.inner, once))
    if rho == 0:
        again = squares = 0.0
    elif inner is not None and report is not None:
        # The law of a report is that of a response, and of a uniform payload in its place.
        uniform = np.maximum((report - (1 - rho) * inner) / rho, 0.0)
        again, squares = float(inner @ uniform), float(uniform @ uniform)
    else:
        squares = math.exp(-once.log_payloads)
        again = squares * _uniform_share(mechanism, inputs)
    return (1 - rho) ** 2 + 2 * rho * (1 - rho) * again + rho**2 * squares


def _uniform_share(mechanism: Memoized, inputs: Inputs) -> float:
    """Return the share of responses that noise can give: all, but of a symbol that is not sensitive only the noise."""
    sensitive = mechanism.inner.sensitive
    if sensitive is None or isinstance(inputs, int):
        return 1.0
    # A set has several symbols, each of which is sensitive.
    noise = cast(UniformNoise, mechanism.inner).uniform_probability
    return float(np.where(sensitive, 1.0, noise) @ inputs / inputs.sum())


def _of_bits(mechanism: Memoized, r: Floats, first: Payloads, other: Payloads) -> Iterator[Check]:
    once = cast(PureMechanism, mechanism.once)
    pairs = zip(support_matrices(once, first), support_matrices(once, other), strict=True)
    both: Counts = sum((one.astype(np.int64) * two).sum(axis=0) for one, two in pairs)
    (unset, q), (becomes_set, cleared) = cast(BitNoise, mechanism.inner).bit_law, mechanism.noise
    r = r[: len(q)]  # one more input of a design is that of the symbols outside of it
    kept = q + (1 - unset - q) * r
    expected = kept * (1 - cleared) ** 2 + (1 - kept) * becomes_set**2
    n = len(first)
    yield binomial("bits set twice", lambda bit: f"bit {bit} is set twice", both, n, expected, _PAIRS)
    others = (r == 0) & once.sensitive
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
    found = _differences(mechanism, first, other)
    drawn = _differences(mechanism, mechanism.again(kept, rng), mechanism.again(kept, rng))
    error = math.sqrt((found.var() + drawn.var()) / n)
    z = float(found.mean() - drawn.mean()) / error if error else 0.0
    text = f"the reports of a device differ in {found.mean():.2f} bits, those of drawn devices in {drawn.mean():.2f}"
    return Check("differing bits", f"difference {z:+.2f} standard errors", 2 * float(special.ndtr(-abs(z))), text)


def _differences(mechanism: WithMemory, first: Payloads, other: Payloads) -> Counts:
    """Return how many bits of both reports of a device differ; of sums, how many signs; shape (n,)."""
    if isinstance(mechanism.bare, StringMechanism):  # its cells are those of all cohorts
        return np.asarray(np.bitwise_count(cast(Packed, first) ^ cast(Packed, other)).sum(axis=1, dtype=np.int64))
    pairs = zip(support_matrices(mechanism, first), support_matrices(mechanism, other), strict=True)
    return np.concatenate([((one > 0) != (two > 0)).sum(axis=1) for one, two in pairs])
