"""Maximum likelihood of bit reports, to a proved distance from the maximum.

Counts do not determine this likelihood, so it needs the retained reports. Three facts limit the work:

- A report with a bit of Z_N is invertible: it names its symbol.
- In every other report, all symbols of Z_N are equally likely, so they are one class beside the symbols of Z_S. They
  share the probability of this class in proportion to the invertible reports (equally, if there are none).
- A report's bits have a likelihood that, up to a factor of the report alone, depends only on the bit of the true
  symbol. So a step takes sums over the set bits of the reports, and not over all bits.

Murakami & Kawamoto (USENIX Security 2019), section 2.5, climb towards the same maximum by EM.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.randomizers.packed_bits import count_bits
from uldp.schemas.arrays import Counts, Floats, Mask, Packed

#: ``maximize_bits`` stops if the mean log-likelihood of a report is proved to be at most this below the maximum.
GAP = 1e-6
# Each symbol starts with at least this part of an equal share.
_START_FLOOR = 1e-3
# Number of bits to unpack at once; a byte for each takes 8 MiB.
_BITS_AT_ONCE = 1 << 23
# Reports of more bits hardly ever repeat, and to sort them for it takes longer than a step.
_MOST_BITS_OF_PATTERNS = 256
# The least value of a curvature: where no report tells a class from the others, its curvature is 0.
_LEAST_CURVATURE = 1e-9
# The least share that all other classes are taken to have.
_LEAST_OTHERS = 1e-3
# Bounds of the factor on the curvature.
_LEAST_DAMPING, _MOST_DAMPING = 0.5, 1e6
_MAX_STEPS = 1_000


@dataclass(frozen=True, eq=False)
class BitFit:
    """The maximum likelihood of bit reports.

    Attributes:
        distribution: Shape (|Z|,), on the probability simplex.
        gap: The mean log-likelihood of a report is at most this below the maximum, whichever distribution has it.
        steps: Number of passes over the reports.
    """

    distribution: Floats
    gap: float
    steps: int


def maximize_bits(mechanism: UnaryEncoding, payloads: Packed, *, gap: float = GAP) -> BitFit:
    """Maximize the likelihood of bit reports over the probability simplex.

    Each step goes to the maximum of a quadratic model with the gradient g, and with the diagonal of the Hessian: seen
    from a report, the bits of other symbols are almost independent, so its other entries are almost one constant, which
    has no effect on the simplex. The model's maximum is a weighted projection. A factor on the diagonal, the curvature
    along the last step, makes up for the rest.

    The likelihood is concave and sum_z g_z r_z = 1, so no distribution has a mean log-likelihood that is more than
    max_z g_z - 1 above that of r. This proves the gap.

    Args:
        mechanism: The mechanism of the reports.
        payloads: Shape (n, ceil(|Z|/8)): packed bits that have passed ``mechanism.possible``. The work takes 4 bytes of
            memory for each set bit.
        gap: How far the mean log-likelihood of a report may be below the maximum.

    Raises:
        ValueError: if there are no reports, or if rounding keeps the gap above ``gap``.
    """
    reports = _Reports.of(mechanism, payloads)
    counts = count_bits([payloads], mechanism.size)
    start = np.maximum(wls(mechanism.channel, counts, len(payloads)), _START_FLOOR / mechanism.size)
    r = reports.pool(start / start.sum())
    at = reports.evaluate(r)
    damping = 1.0
    for step in range(1, _MAX_STEPS):
        if at.gap <= gap:
            return BitFit(reports.unpool(r), at.gap, step)
        curvature = damping * at.curvature
        proposed = onto_simplex(r + at.gradient / curvature, 1 / curvature)
        ahead, move = reports.evaluate(proposed), proposed - r
        rise = ahead.log_likelihood - at.log_likelihood
        if rise > 0:
            along = 2 * (at.gradient @ move - rise) / (at.curvature @ move**2)
            r, at, damping = proposed, ahead, max(float(along), _LEAST_DAMPING)
        elif damping < _MOST_DAMPING:
            damping *= 4
        else:
            break  # rounding hides a rise this small
    raise ValueError(f"the likelihood is proved only to {at.gap:.1g} of its maximum; ask for a larger gap")


@dataclass(frozen=True, eq=False)
class _Point:
    """The likelihood at a distribution; the curvature of a class is the variance of its ratio over the reports."""

    log_likelihood: float
    gradient: Floats
    curvature: Floats

    @property
    def gap(self) -> float:
        return float(self.gradient.max()) - 1


@dataclass(frozen=True, eq=False)
class _Reports:
    """The reports, by classes: each symbol of Z_S, and Z_N as the last one, if there is a symbol in it.

    Attributes:
        sensitive: Shape (|Z|,): which symbols are in Z_S.
        if_one: Shape (v,): likelihood of a set bit, relative to the case that the symbol is not true.
        if_zero: Shape (v,): likelihood of a bit that is not set, likewise.
        if_missed: Likelihood of a report without bit of Z_N if the true symbol is there.
        named: Shape (|Z_N|,): the share of all reports that name each symbol of Z_N.
        parts: Reports without bit of Z_N: 1 where a bit is set, shape (rows, v), and the share of each row, (rows,).
    """

    sensitive: Mask
    if_one: Floats
    if_zero: Floats
    if_missed: float
    named: Floats
    parts: list[tuple[csr_array, Floats]]

    @classmethod
    def of(cls, mechanism: UnaryEncoding, payloads: Packed) -> "_Reports":
        n = len(payloads)
        if n == 0:
            raise ValueError("an estimate needs one report or more, got n=0")
        channel, sensitive = mechanism.channel, mechanism.sensitive
        p, q = channel.p[sensitive], channel.q[sensitive]
        invertible = (payloads & np.packbits(~sensitive)).any(axis=1)
        rows, repeats = _patterns(payloads[~invertible], sensitive)
        return cls(
            sensitive,
            if_one=p / q,
            if_zero=(1 - p) / (1 - q),
            if_missed=1 - channel.p[~sensitive].max(initial=0.0),
            named=count_bits([payloads[invertible]], mechanism.size)[~sensitive] / n,
            parts=list(_set_bits(rows, repeats / n, int(sensitive.sum()))),
        )

    def evaluate(self, r: Floats) -> _Point:
        """Evaluate the likelihood at a distribution over the classes."""
        v = len(self.if_one)
        difference = self.if_one - self.if_zero
        missed, scaled = float(r[v:].sum()), difference * r[:v]
        never = float(self.if_zero @ r[:v]) + self.if_missed * missed
        log_likelihood, sums, by_bit = 0.0, np.zeros(2), np.zeros((v, 2))
        for bits, shares in self.parts:
            marginal = bits @ scaled + never
            log_likelihood += float(shares @ np.log(marginal))
            inverse = shares / marginal
            moments = np.stack([inverse, inverse / marginal], axis=1)
            sums += moments.sum(axis=0)
            by_bit += bits.T @ moments
        squares = (difference * (self.if_one + self.if_zero)) * by_bit[:, 1]
        first = np.append(self.if_zero * sums[0] + difference * by_bit[:, 0], [self.if_missed * sums[0]] * len(r[v:]))
        second = np.append(self.if_zero**2 * sums[1] + squares, [self.if_missed**2 * sums[1]] * len(r[v:]))
        named = float(self.named.sum())
        if named:
            with np.errstate(divide="ignore"):  # a distribution that rules out these reports has likelihood 0
                log_likelihood += named * float(np.log(missed))
                first[v] += named / np.float64(missed)
                second[v] += named / np.float64(missed) ** 2
        # A class grows at the expense of all others, which have the likelihood ratios (1 - r_z ratio_z) / (1 - r_z).
        variance = (second - first**2) / np.maximum(1 - r, _LEAST_OTHERS) ** 2
        return _Point(log_likelihood, first, np.maximum(variance, _LEAST_CURVATURE))

    def pool(self, distribution: Floats) -> Floats:
        """Return the distribution over the classes, shape (v,), or (v + 1,) if a symbol is in Z_N."""
        pooled = distribution[self.sensitive]
        return pooled if self.sensitive.all() else np.append(pooled, distribution[~self.sensitive].sum())

    def unpool(self, classes: Floats) -> Floats:
        """Return the distribution over Z, in which the symbols of Z_N share as the invertible reports do."""
        distribution = np.empty(len(self.sensitive))
        distribution[self.sensitive] = classes[: len(self.if_one)]
        if not self.sensitive.all():
            shares = self.named if self.named.any() else np.ones_like(self.named)
            distribution[~self.sensitive] = classes[-1] * shares / shares.sum()
        return distribution


def _patterns(payloads: Packed, sensitive: Mask) -> tuple[Packed, Counts]:
    """Return the Z_S bits of reports, packed, and how often each row occurs; rows of many bits are not sought twice."""
    if sensitive.all() and len(sensitive) > _MOST_BITS_OF_PATTERNS:
        return payloads, np.ones(len(payloads), dtype=np.int64)
    rows = max(1, _BITS_AT_ONCE // len(sensitive))
    packed = np.concatenate(
        [
            np.packbits(
                np.unpackbits(payloads[first : first + rows], axis=1, count=len(sensitive))[:, sensitive], axis=1
            )
            for first in range(0, max(len(payloads), 1), rows)
        ]
    )
    if sensitive.sum() > _MOST_BITS_OF_PATTERNS:
        return packed, np.ones(len(packed), dtype=np.int64)
    distinct, repeats = np.unique(packed, axis=0, return_counts=True)
    return distinct, repeats


def _set_bits(packed: Packed, shares: Floats, bits: int) -> Iterator[tuple[csr_array, Floats]]:
    """Yield sparse matrices of the set bits of some rows at a time, and the shares of these rows."""
    rows = max(1, _BITS_AT_ONCE // bits)
    ones: npt.NDArray[np.float64] = np.empty(0)
    for first in range(0, len(packed), rows):
        set_bits = np.unpackbits(packed[first : first + rows], axis=1, count=bits).view(np.bool_)
        columns = (np.flatnonzero(set_bits) % bits).astype(np.int32)
        ends = np.cumsum(set_bits.sum(axis=1, dtype=np.int64))
        if len(ones) < len(columns):
            ones = np.ones(2 * len(columns))  # the matrices share it
        pointers = np.concatenate([[0], ends]).astype(np.int32)
        matrix = csr_array((ones[: len(columns)], columns, pointers), shape=set_bits.shape)
        yield matrix, shares[first : first + rows]
