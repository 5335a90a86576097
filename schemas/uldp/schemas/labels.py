"""The names of the entries of a table: keys, labels of values, bins, or indices."""

from collections.abc import Sequence
from itertools import product

from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.slices import attributes_of
from uldp.schemas.table import Table


def value_labels(table: Table, spec: CollectionSpec) -> Sequence[str]:
    """Return a name for each entry of a table: its key, the label of its value, its bin, or its index."""
    names = entry_names(table, spec)
    return [str(i) for i in range(len(table.values))] if names is None else names


def entry_names(table: Table, spec: CollectionSpec) -> Sequence[str] | None:
    """Return the keys, labels or bins of the entries of a table; None if the entries have an index and no name."""
    if table.keys is not None:
        return table.keys
    about = attributes_of(table.of)
    if len(about) > 1:
        variables = [spec.variables.get(name) for name in about]
        labels = [variable.labels for variable in variables if variable is not None]
        return [" x ".join(cell) for cell in product(*labels)] if tuple(map(len, labels)) == table.shape else None
    variable = spec.variable(table.of)
    return None if variable is None else variable.kind.entries(len(table.values), whole=table.whole)
