"""Summation with histogram encoding in specs, and its decoder: sums are the shares, up to the noise."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from numpy.random import Generator
from pydantic import AfterValidator

from uldp.mechanisms.decoders.table_of import share_tables
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.families.bit_flip.randomizer import FlippedBits
from uldp.mechanisms.families.summation.randomizer import MIN_EPSILON, Summation, noise_variance, tail_of_sum
from uldp.mechanisms.inference.forecast import equal_shares
from uldp.mechanisms.laws.channel_laws import Bits
from uldp.mechanisms.laws.estimate import Estimate, part_of
from uldp.mechanisms.laws.law import Cumulants, Law, moments_of_mixture
from uldp.mechanisms.protocol.decoder import SharesDecoder, heaviest_fact, require_reports
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.budget import protects
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table


class NoisyHistogram(Law):
    """The law of a histogram of one user with symmetric noise, of a variance, in each entry; theta is r."""

    def __init__(self, size: int, noise: float, response: Law | None) -> None:
        self.size, self.response, self._noise = size, response, np.array(noise)

    def each(self, theta: Floats) -> Cumulants:
        probability, entries = np.stack([theta, 1 - theta]), np.array([[1.0], [0.0]])
        return moments_of_mixture([(probability, entries, self._noise, np.zeros(1))], theta)

    def one(self, w: Floats, theta: Floats) -> Cumulants:
        noise = self._noise * (w**2).sum(axis=0)
        return moments_of_mixture([(theta[:, np.newaxis], w, noise, np.zeros(1))], theta @ w)

    def times(self, w: Floats, theta: Floats) -> Floats:
        return np.asarray(self._noise * w + theta[:, np.newaxis] * (w - theta @ w))


class SummationDecoder(SharesDecoder):
    """Reads the sums of ``Summation``; ``auto`` is ``onto_simplex``, as all symbols are about equally noisy."""

    estimators = ("auto", "empirical", "norm-sub")

    def __init__(self, mechanism: Mechanism, pum: Pum, *, simultaneous: bool = False) -> None:
        self._mechanism, self._pum, self._simultaneous = mechanism, pum, simultaneous
        self._epsilon, lasting = cast(float, mechanism.guarantee.epsilon), mechanism.guarantee.lasting
        self._noise = noise_variance(self._epsilon)
        response = None if lasting is None else Bits(FlippedBits(pum.size, lasting).channel)
        self._law = NoisyHistogram(pum.size, self._noise, response)

    def check(self, cells: Counts, n: int) -> None:
        if cells.shape != (self._pum.size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self._pum.size} symbols")
        if np.abs(cells).max() > n * self._mechanism.largest_step:
            raise ValueError(f"a sum is beyond that of n = {n} entries of {self._mechanism.largest_step:,}")

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        require_reports(n)
        self.check(cells, n)
        values = cells / n
        part = part_of(self._law, values.clip(0.0, 1.0), n, partial(onto_simplex, values))
        return Estimate(values, np.full(len(values), n), (part,)).repeated(repeats)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test whether any distribution explains the sums: none is below 0 or above n, and together they are n.

        The tests are Chernoff's for sums of n noises with the moment generating function (1-a)^2 / ((1-a e^t)
        (1-a e^-t)), with Bonferroni's correction, so they hold at every n.
        """
        if not n:
            return {}
        k = len(cells)
        far = max(0.0, -float(cells.min()), float(cells.max()) - n)
        together = abs(float(cells.sum()) - n)
        p = 2 * min(2 * k * tail_of_sum(far, n, self._noise), 2 * tail_of_sum(together, n * k, self._noise))
        return {Flag.IMPROBABLE_COUNTS: min(1.0, p)}

    def forecast(self, n: int) -> Floats:
        return self.stderr(equal_shares(self._pum.size), n)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """See the base class. The sum of n geometric noises is the difference of two negative binomial numbers."""
        up, down = rng.negative_binomial(n, -math.expm1(-self._epsilon / 2), (2, len(r)))
        return self._shares((rng.multinomial(n, r) + up - down) / n, estimator) - r

    def stderr(self, r: Floats, n: int) -> Floats:
        return np.sqrt((self._noise + r * (1 - r)) / n)

    @property
    def weight(self) -> float:
        return float(self._mechanism.largest_step)

    def heaviest(self, table: Table) -> float | None:
        return self.weight

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        yield "noise", f"two-sided geometric, standard deviation {math.sqrt(self._noise):.4g} in each entry of a report"
        yield heaviest_fact(self.weight, n)
        worst = self.forecast(n).max()
        yield "errors", f"standard error of the unbiased estimate at n = {n:,}: {worst:.3g} a symbol"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        self.require(estimator)
        linear = self.linear(cells, n, repeats)
        return share_tables(self._pum, self._shares(linear.values, estimator), linear, simultaneous=self._simultaneous)

    def _shares(self, unbiased: Floats, estimator: str) -> Floats:
        return unbiased if estimator == "empirical" else onto_simplex(unbiased)


def _fits_two_bytes(epsilon: float) -> float:
    if not epsilon >= MIN_EPSILON:
        raise ValueError(f"must be {MIN_EPSILON} or more: with less, noise exceeds two bytes; choose sue")
    return epsilon


class SummationSpec(PrivateSpec):
    """Summation with histogram encoding."""

    title = "summation with histogram encoding (SHE)"
    literature: ClassVar = {"she": "HE"}
    not_in_levels = (
        "no count of its reports supports a value, and levels pool such counts; choose sue, which has less noise"
    )
    estimators = ("auto", "empirical", "norm-sub")
    largest_size = 100_000
    large_domains = ("sends two bytes for each value", "linear-olh, pgr or hrr")

    name: Literal["she"]
    epsilon: Annotated[float, AfterValidator(_fits_two_bytes), AfterValidator(protects)]

    def protocol(self, variable: Variable) -> LdpProtocol:
        pum = Pum.of(variable)
        mechanism: Mechanism = Summation(variable.size, self.epsilon)
        if self.lasting_epsilon is not None:
            mechanism = Memoized(FlippedBits(variable.size, self.lasting_epsilon), mechanism)
        return LdpProtocol(pum, mechanism, SummationDecoder(mechanism, pum, simultaneous=variable.simultaneous))
