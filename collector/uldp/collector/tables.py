"""The tables that are published of a statistic."""

from collections.abc import Iterator, Sequence

from uldp.mechanisms.inference.assumed_forgers import with_forgers
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table


def tables_of(decoder: Decoder, spec: CollectionSpec, statistic: Statistic, estimator: str) -> tuple[Table, ...]:
    """Return the tables that an estimator publishes: of enough reports, and with the forgers that the spec assumes."""
    (tables,) = tables_of_each(decoder, spec, [statistic], estimator)
    return tables


def tables_of_each(
    decoder: Decoder, spec: CollectionSpec, statistics: Sequence[Statistic], estimator: str
) -> Iterator[tuple[Table, ...]]:
    """Yield ``tables_of`` each statistic; the decoder may estimate several together."""
    found = decoder.tables_of_each([(each.cells, each.n) for each in statistics], estimator)
    for statistic, tables in zip(statistics, found, strict=True):
        enough = tuple(table for table in tables if table.n >= spec.limits.min_reports)
        if spec.assume_forgers is not None:
            share, n = spec.assume_forgers, statistic.n
            enough = tuple(with_forgers(table, decoder, share, statistic.cells, n) for table in enough)
        yield enough
