"""Slices of an estimate side by side: the largest slices, and of each the largest shares of all users, or the mean."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from uldp.schemas.estimate import Estimate
from uldp.schemas.specs.slices import attributes_of, slice_of
from uldp.schemas.table import Table, TableName

#: The values that are shown of each slice.
VALUES = 3


@dataclass(frozen=True)
class SideBySide:
    """A quantity of all users, and of each slice."""

    total: Table  # the table of all users
    slices: Sequence[Table]  # the tables of slices, the largest first


def without_slices(estimate: Estimate) -> Estimate:
    """Return an estimate with the tables of all users alone."""
    if not any(slice_of(table.of) for table in estimate.tables):
        return estimate
    return replace(estimate, tables=tuple(table for table in estimate.tables if not slice_of(table.of)))


def of_slice(estimate: Estimate, name: tuple[str, ...]) -> Estimate:
    """Return an estimate with the tables of one slice alone, as those of a collection of its own."""
    tables = (table for table in estimate.tables if slice_of(table.of) == name)
    return replace(estimate, tables=tuple(replace(table, of=attributes_of(table.of)) for table in tables))


def slices_of(estimate: Estimate) -> list[tuple[str, ...]]:
    """Return the slices that have tables, those of most reports first."""
    reports: dict[tuple[str, ...], int] = {}
    for table in estimate.tables:
        if name := slice_of(table.of):
            reports[name] = max(reports.get(name, 0), table.n)
    return sorted(reports, key=lambda name: -reports[name])


def side_by_side(estimate: Estimate) -> Iterator[SideBySide]:
    """Yield the shares, or else the mean, of each variable of which slices have tables."""
    for about in dict.fromkeys(attributes_of(table.of) for table in estimate.tables if slice_of(table.of)):
        for name in (TableName.SHARE, TableName.MEAN):
            if (total := estimate.table(name, about)) is not None:
                found = [
                    table
                    for table in estimate.tables
                    if table.name is name and slice_of(table.of) and attributes_of(table.of) == about
                ]
                yield SideBySide(total, sorted(found, key=lambda table: -table.n))
                break
