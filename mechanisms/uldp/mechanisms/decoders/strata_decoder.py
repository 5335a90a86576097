"""Decoders of strata: each part of the statistic has a decoder, cells and a number of reports of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Generic, TypeVar, cast

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.decoders.pure import PureDecoder, ShareEstimate
from uldp.mechanisms.kernels.intervals import outside_p_value
from uldp.mechanisms.laws.estimate import Estimate, joined
from uldp.mechanisms.protocol.decoder import Cost, Decoder, Part, Pooling, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.specs.mistakes import prefixed
from uldp.schemas.table import Table

D = TypeVar("D", bound=Decoder)

# An error names so many parts.
_MOST_SHOWN = 8


class PartsDecoder(Decoder, Generic[D]):
    """Reads each part of a statistic by its own decoder, with the number of reports of this part.

    A subclass says what the parts say together. Tables that are of one part alone name it in ``Table.of``. ValueError
    if the numbers of names, decoders and parts differ.
    """

    estimators: tuple[str, ...] = ("auto", "empirical")
    drawn = True  # whether devices draw their part, so that the number of its reports follows from its share

    def __init__(self, names: Sequence[str], decoders: Sequence[D], strata: Strata) -> None:
        if not len(names) == len(decoders) == len(strata.parts):
            raise ValueError(f"there are {len(strata.parts)} parts, but {len(names)} names, {len(decoders)} decoders")
        self.part_names, self.decoders, self.strata = tuple(names), tuple(decoders), strata
        self.shares: list[float] = strata.shares.tolist()

    def parts(self, cells: Counts, n: int) -> list[Part]:
        """Split a statistic; ValueError if it has the wrong size, or the reports of its parts do not sum to n."""
        if cells.shape != (self.strata.statistic_size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self.strata.statistic_size} cells")
        split = zip(self.part_names, self.decoders, self.strata.split_cells(cells), strict=True)
        parts = [Part(name, decoder, *own) for name, decoder, own in split]
        if min(part.n for part in parts) < 0 or sum(part.n for part in parts) != n:
            shown = [f"{part.name} {part.n}" for part in parts[:_MOST_SHOWN]]
            numbers = ", ".join(shown if len(shown) == len(parts) else [*shown, "..."])
            raise ValueError(f"the numbers of reports of the parts ({numbers}) do not sum to n = {n}")
        return parts

    def check(self, cells: Counts, n: int) -> None:
        for part in self.parts(cells, n):
            with prefixed(f"{part.name}: "):
                part.decoder.check(part.cells, part.n)

    def estimates(self, cells: Counts, n: int, repeats: float = 0.0) -> Sequence[Estimate | None]:
        """Return the unbiased estimate of each part, None without reports; errors as of ``linear``."""
        self.check(cells, n)
        require_reports(n)
        parts = self.parts(cells, n)
        return [part.decoder.linear(part.cells, part.n, repeats) if part.n else None for part in parts]

    def expected(self, n: int) -> list[tuple[D, int]]:
        """Return the decoder of each part, and the number of its reports to expect, but at least 1."""
        return [(decoder, max(round(n * share), 1)) for decoder, share in zip(self.decoders, self.shares, strict=True)]

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        found: dict[Flag, list[float]] = {}
        parts = self.parts(cells, n)
        for part in parts:
            for flag, p_value in part.decoder.p_values(part.cells, part.n).items() if part.n else ():
                found.setdefault(flag, []).append(p_value)
        if n and self.drawn and len(parts) > 1:
            found[Flag.IMPROBABLE_STRATA] = [
                outside_p_value(np.array([part.n for part in parts]), n, self.shares, self.shares)
            ]
        return {flag: min(1.0, len(p_values) * min(p_values)) for flag, p_values in found.items()}

    def tables_of_parts(self, cells: Counts, n: int, estimator: str, repeats: float) -> Iterator[Table]:
        """Yield the tables of each part that has reports; a part that lacks the estimator uses its default."""
        for name, decoder, own, reports in self.parts(cells, n):
            for table in decoder.tables(own, reports, decoder.known(estimator), repeats) if reports else ():
                yield replace(table, of=(name,))

    def part_of(self, table: Table) -> int | None:
        """Return the number of the part that a table is of; None if it is of all parts."""
        return next((number for number, name in enumerate(self.part_names) if table.of == (name,)), None)

    def tested(self, table: Table) -> int:
        part = self.part_of(table)
        return super().tested(table) if part is None else self.decoders[part].tested(table)

    def heaviest(self, table: Table) -> float | None:
        part = self.part_of(table)
        return None if part is None else self.decoders[part].heaviest(table)

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        part = self.part_of(table)
        if part is None:
            return super().forged_ends(table, cells, forged)
        own, _ = self.strata.split_cells(cells)[part]
        return self.decoders[part].forged_ends(table, own, forged)


class SharesOfParts(PartsDecoder[PureDecoder]):
    """A decoder of parts that all count which symbols their reports support."""

    @property
    def simultaneous(self) -> bool:
        """Whether all intervals of a table are to cover the truth at once (Bonferroni), or each alone."""
        return self.decoders[0].simultaneous

    def estimates(self, cells: Counts, n: int, repeats: float = 0.0) -> Sequence[ShareEstimate | None]:
        return cast(Sequence[ShareEstimate | None], super().estimates(cells, n, repeats))

    def draw(self, of_parts: Sequence[Floats], n: int, rng: Generator) -> list[ShareEstimate]:
        """Draw the estimates of a window of n reports, from the distribution of the true symbols of each part."""
        return [
            decoder.linear_of(decoder.draw_counts(r, reports, rng), reports)
            for (decoder, reports), r in zip(self.expected(n), of_parts, strict=True)
        ]

    @cached_property
    def precisions(self) -> list[float]:
        """The inverse of the variance of each part, of one report at equal shares: weights without bias."""
        return [float(1 / np.mean(decoder.forecast(1) ** 2)) for decoder in self.decoders]

    def most_supported(self, part: int) -> int:
        """Return the most symbols of a part that one payload supports as if they were those that count most."""
        channel = self.decoders[part].channel
        return 1 if channel.one_symbol else int(np.ceil(channel.p.sum()))

    def heaviest_in(self, part: int, scores: Floats) -> float:
        """Return for how many reports the heaviest of a part counts in sums, of scores (m, j)."""
        ascending, most = np.sort(scores, axis=0), self.most_supported(part)
        sums = np.cumsum(ascending[::-1], axis=0)[:most].max(), -np.cumsum(ascending, axis=0)[:most].min()
        return max(0.0, *map(float, sums)) / self.shares[part] / float(self.decoders[part].channel.gain[0])


class StrataDecoder(PartsDecoder[Decoder]):
    """Gives the tables of each part, by any of the estimators of the parts; see ``PartsDecoder``."""

    pooling = Pooling.VARIABLES

    def __init__(self, names: Sequence[str], decoders: Sequence[Decoder], strata: Strata) -> None:
        super().__init__(names, decoders, strata)
        self.estimators = tuple(dict.fromkeys(chain.from_iterable(decoder.estimators for decoder in decoders)))

    def cost(self, estimator: str) -> Cost:
        costs = {decoder.cost(decoder.known(estimator)) for decoder in self.decoders}
        return Cost.FINAL if Cost.FINAL in costs else Cost.PANE

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        return tuple(part.n for part in self.parts(cells, n))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimates of all parts; ValueError if a part has no reports, or the cells do not fit."""
        parts = self.parts(cells, n)
        if empty := [part.name for part in parts if not part.n]:
            raise ValueError(f"no reports of {', '.join(empty)}, so there is no estimate of the whole record")
        return joined([part.decoder.linear(part.cells, part.n, repeats) for part in parts])

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        yield from (part for part in self.parts(cells, n) if part.n)

    def forecast(self, n: int) -> Floats:
        return np.concatenate([decoder.forecast(reports) for decoder, reports in self.expected(n)])

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        for name, share, (decoder, reports) in zip(self.part_names, self.shares, self.expected(n), strict=True):
            yield "part", f"{name}: {share:.4g} of the reports"
            for heading, text in decoder.describe(reports, decoder.known(estimator)):
                yield heading, f"{name}: {text}"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        require_reports(n)
        self.require(estimator)
        return tuple(self.tables_of_parts(cells, n, estimator, repeats))
