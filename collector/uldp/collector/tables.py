"""The tables that are published of a statistic."""

from collections.abc import Iterator, Sequence

from uldp.mechanisms.inference.assumed_forgers import all_with_forgers
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.slices import attributes_of, slice_of
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
        enough = _of_enough(tables, spec.limits.min_reports)
        if spec.assume_forgers is not None:
            enough = all_with_forgers(enough, decoder, spec.assume_forgers, statistic.cells, statistic.n)
        yield enough


def _of_enough(tables: Sequence[Table], least: int) -> tuple[Table, ...]:
    """Return the tables of enough reports, without a slice that would show another one.

    Who subtracts all slices that are published from the tables of all users sees the sum of those that are not. If
    these have few reports together, the smallest of the others is not published either.
    """
    few: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for about in {attributes_of(table.of) for table in tables}:
        reports = {table.of: table.n for table in tables if attributes_of(table.of) == about and slice_of(table.of)}
        left_out = sum(n for n in reports.values() if n < least)
        if 0 < left_out < least and left_out < sum(reports.values()):
            smallest = min((n for n in reports.values() if n >= least), default=0)
            few[about] = {next(of for of, n in reports.items() if n == smallest)}
    return tuple(table for table in tables if table.n >= least and table.of not in few.get(attributes_of(table.of), ()))
