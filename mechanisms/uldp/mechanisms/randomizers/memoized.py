"""A mechanism for devices that report again: a permanent response that the device keeps, perturbed for each report.

Source: Erlingsson, Pihur & Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response" (CCS 2014),
for the permanent and the instantaneous randomized response. The noise of the second is solved for here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from uldp.mechanisms.protocol.cells import Cells
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import Mechanism, Randomness, WithMemory
from uldp.schemas.arrays import Floats, Mask, Payloads, Symbols, Values

# Solving for a probability of 0 may give less by the rounding of floats.
_ROUNDING = 1e-12


class Memoized(WithMemory):
    """A permanent response by one mechanism, and noise on top, such that a report has the law of another mechanism.

    The device draws ``permanent`` once for a symbol, and keeps it. Each report is ``again`` of what it kept: its noise
    is all that is missing from the law of the first mechanism to that of the second. So a collector needs only the
    second. Both have ``UniformNoise``, or both have ``BitNoise``, and differ by their noise alone.

    Uniform noise: if the mechanisms send a uniform payload with probability a and a', ``again`` replaces the permanent
    payload with probability (a' - a) / (1 - a) by a uniform one. A report is then uniform with the probability

        a + (1 - a) (a' - a) / (1 - a) = a'.

    Bits: if a bit of the permanent response is set with probability p for the true symbol and q for others, and a bit
    of a report with p' and q', ``again`` sets a bit that is not set with probability (p q' - p' q) / (p - q). It clears
    a bit that is set with probability ((1 - p') (1 - q) - (1 - p) (1 - q')) / (p - q). These solve

        p' = p (1 - cleared) + (1 - p) set          q' = q (1 - cleared) + (1 - q) set.

    For a symbol of Z_N, q = q' = 0, so ``again`` never sets its bit. Of a mechanism with further noise the device keeps
    the bits ``alone``, and each report draws this noise anew. Kept noise that is independent of the symbol would
    protect nothing, and would stay in the mean over all reports of a device.

    Guarantee: one report has that of the second mechanism. All reports of one symbol follow from its one response, so
    they have the budget of the first together, however many they are: (Z_S, Y_P, lasting)-ULDP, where Y_P are the
    sequences of reports that some symbol of Z_S can produce. Two reports may spend more than twice the budget of one:
    two equal ones of many payloads are the response, and not the noise. Reports of several symbols spend the sum of
    what those of each spend, and a reader may see when the symbol changes and returns.
    """

    inner: Mechanism

    def __init__(self, inner: Mechanism, once: Mechanism) -> None:
        """Build the mechanism; ValueError if no noise on a response of ``inner`` gives the law of ``once``."""
        if once.renewable is None:
            raise ValueError("a memoized mechanism needs uniform noise, or bits with noise of their own")
        self.inner, self.once, self.renewed = inner, once, once.renewable
        if _structure(inner) != _structure(self.renewed.alone):
            raise ValueError("the permanent response and the reports must differ by their noise alone")
        self.noise = _positive(self.renewed.missing(inner))
        self.guarantee = replace(once.guarantee, lasting=inner.guarantee.epsilon)
        self.size, self.held, self.form, self.largest_step = once.size, once.held, once.form, once.largest_step
        self.statistic_size, self.partitions = once.statistic_size, once.partitions
        self.counts_payloads, self.channel = once.counts_payloads, once.channel
        self.few_symbols = once.few_symbols

    @property
    def bare(self) -> Mechanism:
        return self.once

    def warnings(self, n: int) -> Iterator[str]:
        yield from self.once.warnings(n)
        if self.once.links(n):
            yield (
                f"a device sends the response that it keeps, unchanged, in {1 - self.noise[0]:.0%} of its reports, and"
                f" there are more responses than users: a reader can link those of a device among {n:,} users,"
                " and sees that its value has changed; what the value is stays protected. Take a"
                " mechanism with fewer payloads, such as rr of few values, or leave out lasting_epsilon"
            )

    def permanent(self, symbols: Values, randomness: Randomness) -> Payloads:
        self.check_symbols(symbols)  # bits of a design have one input more
        return self.inner.perturb(symbols, randomness)

    def again(self, permanent: Payloads, randomness: Randomness) -> Payloads:
        return self.renewed.again(permanent, self.noise, randomness)

    def device_form(self) -> DeviceForm:
        both: DeviceForm = {"form": "kept", "permanent": self.inner.device_form(), "once": self.once.device_form()}
        return both | self.renewed.noise_form(self.noise)

    def possible(self, payloads: Payloads) -> Mask:
        return self.once.possible(payloads)

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        return self.once.inspect(payloads)

    def describe(self, payload: int | bytes) -> str:
        return self.once.describe(payload)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        return self.once.tally(parts, groups, k)


def _structure(mechanism: Mechanism) -> tuple[object, ...]:
    """Return the symbols and payloads of a mechanism, and in ``chance_support`` the size of its sets or buckets."""
    sensitive = None if mechanism.sensitive is None else mechanism.sensitive.tobytes()
    sizes = mechanism.size, mechanism.form, mechanism.structure, mechanism.chance_support
    return (type(mechanism), *sizes, sensitive)


def _positive(noise: Floats) -> Floats:
    """Check probabilities, and round them up to 0."""
    if not (noise >= -_ROUNDING).all():
        raise ValueError("no noise gives the law of one report; its epsilon must be at most the lasting one")
    return np.maximum(noise, 0.0)
