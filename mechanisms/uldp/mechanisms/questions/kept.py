"""Errors over windows whose devices keep their responses, so that the reports of a device depend on each other.

With ``lasting_epsilon``, two reports of a device are drawn from one permanent response. Given the responses, the
unbiased estimate of a window is in the mean that which the responses themselves would give. So two windows with the
same devices have the covariance of an estimate from the permanent responses: of n reports each, Cov_inner(r)/n, where
``inner`` is the mechanism of the permanent response. For a symbol of a pure mechanism with p, q of the response and p',
q' of a report, this is rho v, where v is the variance of a window's estimate, and

    rho = g^2 Var[B] / Var[Y]        g = (p' - q')/(p - q)
    B ~ Bernoulli(q + (p - q) r)     Y ~ Bernoulli(q' + (p' - q') r)

So the mean of T windows has the variance v (1 + (T - 1) rho)/T, and a difference 2 v (1 - rho). Windows of n_s and n_t
reports share min(n_s, n_t) devices at the most, so their covariance is at most rho v n/max(n_s, n_t).

The collector does not know which devices are in two windows. A covariance is never negative. So a mean or a sum is
taken to be of the same devices, and a difference of others, unless the caller says that they are the same.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Protocol

import numpy as np

from uldp.mechanisms.decoders.pair_decoder import PairErrors, PairLinear
from uldp.mechanisms.decoders.pure import PureLinear
from uldp.mechanisms.decoders.set_decoder import SetErrors, SetLinear
from uldp.mechanisms.decoders.strata_decoder import StrataDecoder, StrataLinear
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats

#: The summed cells of windows that have no report in common, and the number of counted reports of each.
Windows = tuple[Counts, Sequence[float]]


class Errors(Protocol):
    """Variances and covariances of m numbers, as ``Linear`` has them.

    Attributes:
        variance: Shape (m,).
    """

    @property
    def variance(self) -> Floats:
        """See the class."""

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w for w of shape (m, j)."""


@dataclass(frozen=True, eq=False)
class OfResponses:
    """The covariance of an unbiased estimate of shares from the permanent responses of n devices; see ``Errors``.

    Attributes:
        mechanism: The mechanism of the permanent responses.
        r: Shape (|Z|,): the shares of the symbols, within [0, 1].
        n: The number of devices.
    """

    mechanism: PureMechanism
    r: Floats
    n: int

    @property
    def variance(self) -> Floats:
        """Shape (|Z|,)."""
        return self.mechanism.channel.variance(self.r, self.n)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        return self.mechanism.channel.covariance(self.r)(w) / self.n


@dataclass(frozen=True, eq=False)
class Summed:
    """The unbiased estimate of windows together whose devices may be the same; see ``Linear``.

    Attributes:
        once: The estimate of the summed cells, as if all reports were of different devices.
        responses: The covariance of an estimate from as many permanent responses.
        repeats: See ``repeats``.
    """

    once: Linear
    responses: Errors
    repeats: float

    @property
    def values(self) -> Floats:
        """Shape (m,): the estimates."""
        return self.once.values

    @cached_property
    def variance(self) -> Floats:
        """Shape (m,): their variances."""
        return self.once.variance + self.repeats * self.responses.variance

    @property
    def n(self) -> Counts:
        """Shape (m,): the number of reports."""
        return self.once.n

    @property
    def wider(self) -> Floats:
        """Shape (m,): how much wider intervals are than those of as many different devices."""
        with np.errstate(invalid="ignore"):
            ratio: Floats = np.where(self.once.variance > 0, np.sqrt(self.variance / self.once.variance), 1.0)
        return ratio

    @property
    def widest(self) -> float:
        """The most by which intervals of any table are wider; sets and pairs have others than those of shares."""
        match self.once, self.responses:
            case SetLinear(own_errors=once), SetErrors() as responses:
                ratio = responses.most_of(once)
            case PairLinear(own_errors=once), PairErrors() as responses:
                ratio = responses.most_of(once)
            case _:
                return float(np.max(self.wider))
        return math.sqrt(1 + self.repeats * ratio)

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return the intervals of as many different devices, made wider on each side."""
        low, high = self.once.interval(coverage)
        return self.values - self.wider * (self.values - low), self.values + self.wider * (high - self.values)

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        return self.once.times(w) + self.repeats * self.responses.times(w)


@dataclass(frozen=True, eq=False)
class Difference:
    """The difference of two unbiased estimates of the same numbers, the first less the other; see ``Linear``.

    Attributes:
        first: The estimate of which the other is taken off.
        other: The other.
        shared: Their covariance, if they depend on each other.
    """

    first: Linear
    other: Linear
    shared: Errors | None = None

    @property
    def values(self) -> Floats:
        """Shape (m,): the differences."""
        return self.first.values - self.other.values

    @cached_property
    def variance(self) -> Floats:
        """Shape (m,): their variances."""
        independent: Floats = self.first.variance + self.other.variance
        return independent if self.shared is None else np.maximum(independent - 2 * self.shared.variance, 0.0)

    @property
    def n(self) -> Counts:
        """Shape (m,): the number of reports of both."""
        total: Counts = self.first.n + self.other.n
        return total

    def interval(self, coverage: float) -> tuple[Floats, Floats]:
        """Return intervals from those of both estimates: the squares of the distances to their ends add up.

        With a covariance, twice the product of the distances times the correlation is taken off. Source of the rule
        (MOVER): Zou & Donner, "Construction of confidence limits about effect measures" (Statistics in Medicine 27,
        2008), section 3.
        """
        (low, high), (other_low, other_high) = self.first.interval(coverage), self.other.interval(coverage)
        below = self._distance(self.first.values - low, other_high - self.other.values)
        above = self._distance(high - self.first.values, self.other.values - other_low)
        return self.values - below, self.values + above

    def _distance(self, one: Floats, other: Floats) -> Floats:
        square = one**2 + other**2
        if self.shared is not None:
            scale = np.sqrt(self.first.variance * self.other.variance)
            square -= 2 * one * other * np.where(scale > 0, self.shared.variance / np.where(scale > 0, scale, 1.0), 0.0)
        distance: Floats = np.sqrt(np.maximum(square, 0.0))
        return distance

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        product = self.first.times(w) + self.other.times(w)
        return product if self.shared is None else product - 2 * self.shared.times(w)


@dataclass(frozen=True, eq=False)
class Scaled:
    """A covariance times a number; see ``Errors``."""

    errors: Errors
    factor: float

    @property
    def variance(self) -> Floats:
        """Shape (m,)."""
        return self.factor * self.errors.variance

    def times(self, w: Floats) -> Floats:
        """Return Cov @ w."""
        return self.factor * self.errors.times(w)


def summed(protocol: LdpProtocol, windows: Windows) -> Linear:
    """Return the unbiased estimate of windows together, from their summed cells.

    Its errors hold if each device reports in as many of the windows as it can. They are those of ``decoder.linear`` of
    the sum, if the devices keep no responses, or if there is one window. Mechanisms of which the covariance is not
    known, such as those of means, are taken to give each device the same report in all windows, which is more.

    Args:
        protocol: The protocol of the collection.
        windows: One window or more. Of a record, each window is taken to have the same shares of the attributes.

    Raises:
        ValueError: if the cells do not fit, or a part of a record has no reports.
    """
    return _summed(protocol.decoder, protocol.mechanism, windows)


def difference(
    protocol: LdpProtocol, first: Windows, other: Windows, *, same_devices: bool = False, part: int | None = None
) -> Linear:
    """Return the first windows together less the other windows together.

    Args:
        protocol: The protocol of the collection.
        first: Windows, as for ``summed``.
        other: Windows that have no report in common with the first.
        same_devices: Whether the devices of the windows with fewer reports are among those of the others, and hold what
            they held. If devices keep responses, the difference then has less noise. Otherwise, the errors hold
            whichever devices are in both.
        part: The position of one part of a record, which alone is compared.

    Raises:
        ValueError: as ``summed`` does.
    """
    decoder, mechanism = protocol.decoder, protocol.mechanism
    if part is not None:
        assert isinstance(decoder, StrataDecoder)
        (decoder, mechanism, first), (_, _, other) = (
            list(_parts(decoder, mechanism, windows))[part] for windows in (first, other)
        )
    return _difference(decoder, mechanism, first, other, same_devices)


def response_variance(mechanism: Mechanism, linear: Linear, n: int) -> Floats:
    """Return the part of the variances of an estimate of n reports that comes from kept responses, shape (m,).

    It is 0 if devices keep none, and all of the variance if it is not known.
    """
    if not mechanism.memory:
        return np.zeros_like(linear.values)
    once = linear.once if isinstance(linear, Summed) else linear
    responses = _responses(mechanism, once, n)
    return linear.variance if responses is None else np.minimum(responses.variance, linear.variance)


def _summed(decoder: Decoder, mechanism: Mechanism, windows: Windows) -> Linear:
    cells, sizes = windows
    n = _total(sizes)
    once = decoder.linear(cells, n)
    if not mechanism.memory or len(sizes) == 1:
        return once
    if isinstance(decoder, StrataDecoder):
        return StrataLinear(tuple(_summed(*part) for part in _parts(decoder, mechanism, windows)))
    return Summed(once, _responses(mechanism, once, n) or once, repeats(sizes))


def _difference(decoder: Decoder, mechanism: Mechanism, first: Windows, other: Windows, same_devices: bool) -> Linear:
    one, two = (_summed(decoder, mechanism, windows) for windows in (first, other))
    if not (same_devices and mechanism.memory):
        return Difference(one, two)
    if isinstance(decoder, StrataDecoder):
        pairs = zip(_parts(decoder, mechanism, first), _parts(decoder, mechanism, other), strict=True)
        return StrataLinear(tuple(_difference(*part, windows, same_devices) for part, (_, _, windows) in pairs))
    n_one, n_two = _total(first[1]), _total(other[1])
    # If the covariance is not known, 0 is less than it, and gives a difference more error than it has.
    n = n_one + n_two
    responses = _responses(mechanism, decoder.linear(first[0] + other[0], n), n)
    pairs_of_reports = sum(min(s, t) for s, t in product(first[1], other[1]))
    return Difference(
        one, two, None if responses is None else Scaled(responses, n * pairs_of_reports / (n_one * n_two))
    )


def _total(sizes: Sequence[float]) -> int:
    return round(sum(sizes))


def _parts(
    decoder: StrataDecoder, mechanism: Mechanism, windows: Windows
) -> Iterator[tuple[Decoder, Mechanism, Windows]]:
    """Yield each part of a record, with its cells, and with its share of the reports of each window."""
    assert isinstance(mechanism, Strata)
    cells, sizes = windows
    n = _total(sizes)
    for each, part in zip(decoder.parts(cells, n), mechanism.parts, strict=True):
        yield each.decoder, part, (each.cells, [size * each.n / n for size in sizes])


def _responses(mechanism: Mechanism, once: Linear, n: int) -> Errors | None:
    """Return the covariance of an estimate from n permanent responses; None if it is not known."""
    if isinstance(mechanism, Memoized) and isinstance(mechanism.inner, PureMechanism):
        if isinstance(once, PureLinear):
            return OfResponses(mechanism.inner, np.clip(once.values, 0.0, 1.0), n)
        if isinstance(once, SetLinear | PairLinear):
            return replace(once.errors(mechanism.inner.channel), reports=n)
    return None


def repeats(sizes: Sequence[float]) -> float:
    """Return in how many other windows the device of a report has another, in the mean over all reports, at the most.

    It is the sum of min(n_s, n_t) over all s != t, over the sum of n: of T equal windows T - 1.

    Args:
        sizes: The number n of reports of each window.
    """
    ordered = np.sort(np.asarray(sizes, dtype=np.float64))
    later = np.arange(len(ordered))[::-1]
    return float(2 * (ordered * later).sum() / ordered.sum())
