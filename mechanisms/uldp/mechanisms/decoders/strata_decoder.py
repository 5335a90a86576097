"""The decoder of strata: each part of the statistic has its own decoder, number of reports and tables."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from uldp.mechanisms.decoders.parts_decoder import PartsDecoder
from uldp.mechanisms.laws.estimate import Estimate, joined
from uldp.mechanisms.protocol.decoder import Cost, Decoder, Part, Pooling, require_reports
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import Table


class StrataDecoder(PartsDecoder[Decoder]):
    """Gives the tables of each part, by any of the estimators of the parts; see ``PartsDecoder``."""

    pooling = Pooling.VARIABLES

    def __init__(self, names: Sequence[str], decoders: Sequence[Decoder], strata: Strata) -> None:
        super().__init__(names, decoders, strata)
        self.estimators = tuple(dict.fromkeys(chain.from_iterable(decoder.estimators for decoder in decoders)))

    def cost(self, estimator: str) -> Cost:
        """See the base class: that of the part that takes longest."""
        costs = {decoder.cost(decoder.known(estimator)) for decoder in self.decoders}
        return Cost.FINAL if Cost.FINAL in costs else Cost.PANE

    def reports(self, cells: Counts, n: int) -> tuple[int, ...]:
        """See the base class: those of each part."""
        return tuple(part.n for part in self.parts(cells, n))

    def linear(self, cells: Counts, n: int, repeats: float = 0.0) -> Estimate:
        """Return the unbiased estimates of all parts; ValueError if a part has no reports, or the cells do not fit."""
        parts = self.parts(cells, n)
        if empty := [part.name for part in parts if not part.n]:
            raise ValueError(f"no reports of {', '.join(empty)}, so there is no estimate of the whole record")
        return joined([part.decoder.linear(part.cells, part.n, repeats) for part in parts])

    def variables(self, cells: Counts, n: int, names: Sequence[str]) -> Iterator[Part]:
        """See the base class."""
        yield from (part for part in self.parts(cells, n) if part.n)

    def forecast(self, n: int) -> Floats:
        """Return the standard errors of the parts, each at its expected number of reports."""
        return np.concatenate([decoder.forecast(reports) for decoder, reports in self.expected(n)])

    def describe(self, n: int, estimator: str) -> Iterator[tuple[str, str]]:
        """Yield the share of each part, and the facts about it at its expected number of reports."""
        for name, share, (decoder, reports) in zip(self.part_names, self.shares, self.expected(n), strict=True):
            yield "part", f"{name}: {share:.4g} of the reports"
            for heading, text in decoder.describe(reports, decoder.known(estimator)):
                yield heading, f"{name}: {text}"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the tables of each part that has reports; a part that lacks the estimator uses its default."""
        require_reports(n)
        self.require(estimator)
        return tuple(self.tables_of_parts(cells, n, estimator, repeats))
