"""A few bits of a unary encoding in specs, and the decoder of its designs, each of which has reports of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from pydantic import Field

from uldp.mechanisms.assembly import kept
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.decoders.strata_decoder import SharesOfParts
from uldp.mechanisms.decoders.table_of import table_of
from uldp.mechanisms.encodings.strata_encoding import StrataEncoding, StratumSource
from uldp.mechanisms.estimators.simplex import onto_simplex
from uldp.mechanisms.families.bit_flip.randomizer import DesignEncoding, FlippedBits, design_widths
from uldp.mechanisms.inference.forecast import equal_shares, one_simulation_text
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.laws.estimate import Estimate, joined, part_of
from uldp.mechanisms.protocol.decoder import SharesDecoder, heaviest_fact, require_reports
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import Strata, strata_of
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.flags import Flag
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mechanism_family import MisfitError, PrivateSpec
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table, TableName


class DesignDecoder(SharesOfParts, SharesDecoder):
    """Estimates the shares of values from the bits of each design.

    - "empirical": unbiased; entries may be negative.
    - "auto": the distribution that is nearest to it, weighted by the variances of the noise, as ``wls`` has it.
    """

    def __init__(self, strata: Strata, *, simultaneous: bool = False) -> None:
        self._widths = [part.statistic_size for part in strata.parts]
        self._ends = np.cumsum(self._widths)
        pums = [Pum(np.ones(width, dtype=np.bool_), (), np.zeros((0, width)), np.zeros(0)) for width in self._widths]
        decoders = [PureDecoder(*each, simultaneous=simultaneous) for each in zip(strata.parts, pums, strict=True)]
        super().__init__([f"design {number}" for number in range(len(pums))], decoders, strata)
        channels = [decoder.channel for decoder in decoders]
        self._p, self._q = (np.concatenate(each) for each in zip(*((of.p, of.q) for of in channels), strict=True))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimate; a design without reports has 0, with the errors of one report."""
        self.check(cells, n)
        require_reports(n)
        counts, reports = self._split(cells)
        of_each = np.repeat(reports, self._widths)
        values = self._unbiased(counts, of_each)

        @cache
        def nearest() -> Floats:
            return self._shares(values, of_each, "auto")

        designs = []
        for decoder, n_c, end in zip(self.decoders, reports, self._ends, strict=True):
            place = slice(end - decoder.law.size, end)
            part = part_of(
                decoder.law, values[place].clip(0.0, 1.0), max(n_c, 1), partial(lambda at: nearest()[at], place)
            )
            designs.append(Estimate(values[place], of_each[place], (part,)))
        return joined(designs).repeated(repeats)

    def _unbiased(self, counts: Counts, n: Counts) -> Floats:
        """Return the unbiased shares, where a symbol has as many reports as its design; without any they are 0."""
        return np.where(n > 0, (counts / np.maximum(n, 1) - self._q) / (self._p - self._q), 0.0)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Test the numbers of reports of designs, and all bits: each is set with a probability from q to p."""
        self.check(cells, n)
        if n <= 0:
            return {}
        counts, reports = self._split(cells)
        of_bits = np.repeat(reports, self._widths)
        found = {Flag.IMPROBABLE_COUNTS: outside_p_value(counts, of_bits, self._q, self._p)}
        if len(reports) > 1:
            found[Flag.IMPROBABLE_STRATA] = outside_p_value(np.array(reports), n, self.shares, self.shares)
        return found

    def forecast(self, n: int) -> Floats:
        return self.stderr(equal_shares(sum(self._widths)), n)

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        reports = np.repeat(rng.multinomial(n, self.strata.shares), self._widths)
        counts = rng.binomial(reports, self._q + (self._p - self._q) * r)
        return self._shares(self._unbiased(counts, reports), reports, estimator) - r

    def stderr(self, r: Floats, n: int) -> Floats:
        m = self._q + (self._p - self._q) * r
        return np.asarray(np.sqrt(m * (1 - m) * len(self._widths) / n) / (self._p - self._q))

    @property
    def weight(self) -> float:
        return len(self._widths) / float((self._p - self._q).min())

    def heaviest(self, table: Table) -> float | None:
        return self.weight

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        yield "designs", f"{len(self._widths):,}, each of {self._widths[0]:,} values or fewer"
        first, last = (f"p {self._p[bit]:.6g}, q {self._q[bit]:.6g}" for bit in (0, -1))
        yield "bits", first if first == last else f"{first}; of the last value, which has a design of its own, {last}"
        yield heaviest_fact(self.weight, n)
        yield "errors", one_simulation_text(self.simulate, sum(self._widths), estimator, n, self.forecast(n))

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the table of shares. A design without reports excludes no share."""
        self.require(estimator)
        linear = self.linear(cells, n, repeats)
        shares, none = self._shares(linear.values, linear.n, estimator), linear.n == 0
        table = table_of(TableName.SHARE, shares, linear, simultaneous=self.simultaneous, n=n, whole=True)
        assert table.low is not None
        assert table.high is not None
        return (replace(table, low=np.where(none, 0.0, table.low), high=np.where(none, 1.0, table.high)),)

    def _shares(self, unbiased: Floats, n: Counts, estimator: str) -> Floats:
        if estimator == "empirical":
            return unbiased
        noise = 1 / np.maximum(n, 1)  # q (1-q) / (p-q)^2 is the same for all
        return onto_simplex(unbiased, noise)

    def _split(self, cells: Counts) -> tuple[Counts, list[int]]:
        """Return the counts of all bits, and the number of reports of each design."""
        counts, reports = zip(*self.strata.split_cells(cells), strict=True)
        return np.concatenate(counts), list(reports)


#: The most designs.
MAX_DESIGNS = 1024
#: The bits of the example, unless so few make too many designs. Fewer cost accuracy, and with a bit for each value it
#: is sue.
_BITS = 64


class BitFlipSpec(PrivateSpec):
    """A few bits of a unary encoding, those of one design.

    Attributes:
        bits: The number of values of a design, which is that of the bits of a report.
    """

    title = "a few bits of a unary encoding (ωBitFlip)"
    literature: ClassVar = {"bit-flip": "ωBitFlip dBitFlip", "bit-flip with lasting_epsilon": "ωBitFlipPM dBitFlipPM"}
    not_in_levels = "levels pool counts of all their reports, and a value has those of its design alone; choose sue"
    estimators = ("auto", "empirical")
    needs: ClassVar = {"bits": "the number of bits of a report, for example bits: 16", **PrivateSpec.needs}

    name: Literal["bit-flip"]
    bits: int = Field(ge=1)

    @classmethod
    def example(cls, size: int) -> dict[str, Any]:
        return {"bits": min(max(_BITS, -(-size // MAX_DESIGNS)), size)}

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        least = -(-values.size // MAX_DESIGNS)
        if self.bits > values.size:
            raise MisfitError(
                "bits",
                f"there are only {values.size:,} values; write {values.size} or less, or choose sue for all bits",
            )
        if self.bits < least:
            raise MisfitError(
                "bits",
                f"{self.bits:,} bits of {values.size:,} values need more than {MAX_DESIGNS:,} designs; write {least} or"
                " more",
            )
        return self

    def protocol(self, variable: Variable) -> LdpProtocol:
        widths = design_widths(variable.size, self.bits)
        parts = [kept(self, FlippedBits(width, self.epsilon), partial(FlippedBits, width)) for width in widths]
        strata = strata_of(parts, noun="design")
        pum = Pum.of(variable)
        designs = [DesignEncoding(pum, number * self.bits, width) for number, width in enumerate(widths)]
        encoding = StrataEncoding([StratumSource(design, (0,)) for design in designs], strata)
        return LdpProtocol(encoding, strata, DesignDecoder(strata, simultaneous=variable.simultaneous))
