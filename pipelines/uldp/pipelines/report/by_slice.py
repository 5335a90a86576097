"""Slices of the last window as the page shows them: side by side, and the tables of the largest ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.pipelines.results.slices import VALUES, side_by_side
from uldp.pipelines.results.tables import decimals, entry_text, largest, of_attributes, percent
from uldp.schemas.estimate import Estimate
from uldp.schemas.labels import value_labels
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.slices import slice_text
from uldp.schemas.table import TableName

#: How many slices the page shows with tables of their own, and how many it compares.
SHOWN, COMPARED = 24, 400


@dataclass(frozen=True)
class Compared:
    """A quantity of each slice."""

    of: str  # the end of a phrase that names the attribute of a record; empty if the collection has one variable
    headings: Sequence[str]  # what the figures are: the values that most users hold, or a mean
    #: Of each slice, the most reports first, its name, its n and the figures.
    rows: Sequence[tuple[str, int, Sequence[str]]]
    size: int  # the number of slices that have tables


def compared(estimate: Estimate, spec: CollectionSpec) -> Iterator[Compared]:
    """Yield the shares of the values that most users hold, or the mean, of each slice."""
    for each in side_by_side(estimate):
        total, found = each.total, each.slices[:COMPARED]
        if total.name is TableName.SHARE:
            order = largest(total.values, VALUES)
            labels = value_labels(total, spec)
            headings = [f"{labels[i]}, %" for i in order]
            places = decimals(np.array([table.stderr[i] for table in found for i in order]))
            figures = [[percent(table.values[i], places) for i in order] for table in found]
        else:
            headings, figures = [f"{total.name}"], [[entry_text(table, 0)] for table in found]
        rows = [(slice_text(table.of), table.n, texts) for table, texts in zip(found, figures, strict=True)]
        yield Compared(of_attributes(total.of), headings, rows, len(each.slices))
