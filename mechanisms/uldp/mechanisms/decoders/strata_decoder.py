"""The decoder of strata: each part of the statistic has its own decoder, number of reports and tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from uldp.mechanisms.kernels.intervals import lower_tail
from uldp.mechanisms.laws.estimate import Estimate, joined
from uldp.mechanisms.protocol.decoder import Cost, Decoder, Part, Pooling, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.table import Table


def share_p_value(reports: Sequence[int], n: int, shares: Sequence[float]) -> float:
    """Bound the probability that the numbers of reports of the parts are so far from their shares, by Bonferroni.

    The tests of each are exact, because a chi-square of few reports is far from its distribution.
    """
    tails = [
        min(lower_tail(of_part, n, share), lower_tail(n - of_part, n, 1 - share))
        for of_part, share in zip(reports, shares, strict=True)
    ]
    return min(1.0, 2 * len(tails) * min(tails))


class StrataDecoder(Decoder):
    """Reads each part of a statistic by its own decoder, with the number of reports of this part.

    Args:
        names: The name of each part, for ``Table.of``.
        decoders: One for each part.
        strata: The mechanism.

    Raises:
        ValueError: if the numbers of names, decoders and parts differ.
    """

    pooling = Pooling.VARIABLES

    def __init__(self, names: Sequence[str], decoders: Sequence[Decoder], strata: Strata) -> None:
        if not len(names) == len(decoders) == len(strata.parts):
            raise ValueError(f"there are {len(strata.parts)} parts, but {len(names)} names, {len(decoders)} decoders")
        self._names = tuple(names)
        self._decoders = tuple(decoders)
        self._strata = strata
        self.estimators = tuple(dict.fromkeys(chain.from_iterable(decoder.estimators for decoder in decoders)))

    def check(self, cells: Counts, n: int) -> None:
        """Raise ValueError if no n reports give these cells: each part is checked, and the sum of their reports."""
        for part in self.parts(cells, n):
            try:
                part.decoder.check(part.cells, part.n)
            except ValueError as error:
                raise ValueError(f"{part.name}: {error}") from error

    def cost(self, estimator: str) -> Cost:
        """See the base class: that of the part that takes longest."""
        costs = {decoder.cost(decoder.known(estimator)) for decoder in self._decoders}
        return Cost.FINAL if Cost.FINAL in costs else Cost.PANE

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        """Return the number of reports of each part.

        Raises:
            ValueError: if the cells do not fit.
        """
        return tuple(part.n for part in self.parts(cells, n))

    def tested(self, table: Table) -> int:
        """See the base class."""
        (name,) = table.of
        return self._decoders[self._names.index(name)].tested(table)

    def heaviest(self, table: Table) -> float | None:
        """See the base class."""
        (name,) = table.of
        return self._decoders[self._names.index(name)].heaviest(table)

    def forged_ends(self, table: Table, cells: Counts, forged: float) -> tuple[Floats, Floats] | None:
        """See the base class."""
        (name,) = table.of
        at = self._names.index(name)
        own, _ = self._strata.split_cells(cells)[at]
        return self._decoders[at].forged_ends(table, own, forged)

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimates of all parts.

        Raises:
            ValueError: if a part has no reports, or the cells do not fit.
        """
        parts = self.parts(cells, n)
        if empty := [part.name for part in parts if not part.n]:
            raise ValueError(f"no reports of {', '.join(empty)}, so there is no estimate of the whole record")
        return joined([part.decoder.linear(part.cells, part.n, repeats) for part in parts])

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        """See the base class."""
        yield from (part for part in self.parts(cells, n) if part.n)

    def p_values(self, cells: Counts, n: int) -> Mapping[Flag, float]:
        """Return the p-values of the parts with Bonferroni's correction, and that of the numbers of their reports."""
        found: dict[Flag, list[float]] = {}
        parts = self.parts(cells, n)
        for part in parts:
            for flag, p_value in part.decoder.p_values(part.cells, part.n).items() if part.n else ():
                found.setdefault(flag, []).append(p_value)
        if n and len(parts) > 1:
            shares = self._strata.shares.tolist()
            found[Flag.IMPROBABLE_STRATA] = [share_p_value([part.n for part in parts], n, shares)]
        return {flag: min(1.0, len(p_values) * min(p_values)) for flag, p_values in found.items()}

    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the parts, each at its expected number of reports."""
        expected = self._expected(n)
        return np.concatenate([decoder.forecast(of) for decoder, of in zip(self._decoders, expected, strict=True)])

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the share of each part, and the facts about it at its expected number of reports."""
        for name, decoder, share, expected in zip(
            self._names, self._decoders, self._strata.shares.tolist(), self._expected(n), strict=True
        ):
            yield "part", f"{name}: {share:.4g} of the reports"
            for heading, text in decoder.describe(expected, decoder.known(estimator)):
                yield heading, f"{name}: {text}"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the tables of each part that has reports.

        A part whose decoder lacks the estimator uses the decoder's default.

        Raises:
            ValueError: if ``n`` is not positive, the cells do not fit, or no part has such an estimator.
        """
        require_reports(n)
        self.require(estimator)
        return tuple(
            replace(table, of=(part.name,))
            for part in self.parts(cells, n)
            if part.n
            for table in part.decoder.tables(part.cells, part.n, part.decoder.known(estimator), repeats)
        )

    def parts(self, cells: Counts, n: int) -> list[Part]:
        """Split a statistic.

        Raises:
            ValueError: if it has the wrong size, or the reports of its parts do not sum to n.
        """
        if cells.shape != (self._strata.statistic_size,):
            raise ValueError(f"the cells have shape {cells.shape}, but there are {self._strata.statistic_size} cells")
        split = self._strata.split_cells(cells)
        parts = [
            Part(name, decoder, *own) for name, decoder, own in zip(self._names, self._decoders, split, strict=True)
        ]
        if min(part.n for part in parts) < 0 or sum(part.n for part in parts) != n:
            numbers = ", ".join(f"{part.name} {part.n}" for part in parts)
            raise ValueError(f"the numbers of reports of the parts ({numbers}) do not sum to n = {n}")
        return parts

    def _expected(self, n: int) -> list[int]:
        """Return the expected number of reports of each part, but at least 1."""
        return [max(round(n * share), 1) for share in self._strata.shares.tolist()]
