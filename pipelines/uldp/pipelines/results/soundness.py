"""Validate the panes in files, which may be damaged, so that later code handles only panes that a job may write."""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.arrays import Floats
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import SKEW_RANGES, PaneHeader
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import MAX_CELLS, Statistic, counts_from_avro
from uldp.schemas.table import Basis, Table, TableName
from uldp.transforms.io.results.names import version_name

PaneRecord = TypeVar("PaneRecord", bound=PaneHeader)
#: A limit far above every real figure or standard error. Larger numbers would overflow in figures and in products.
_FIGURE_LIMIT = 1e15
#: No report moves a cell by more than this.
_STEP_LIMIT = 1 << 23
#: The times that ISO 8601 text can hold, in the years 1 to 9999, in milliseconds.
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000, 253_402_300_799_999
#: So many cells are read without a look at the spec: they take 32 kB.
_FEW_CELLS = 1 << 12


def check_claim(value: Mapping[str, Any], specs: Path) -> None:
    """Raise ContainerError if a value claims more cells than its spec, or ``MAX_CELLS`` without one, allows.

    So it takes no memory: a few bytes may claim any number.
    """
    cells = value.get("cells")
    if cells is not None and cells["size"] > _FEW_CELLS:
        most, spec = MAX_CELLS, specs / version_name(value["collection"], value["version"]) / "spec.yaml"
        with suppress(OSError):
            most = _cells_of(spec, spec.stat().st_mtime_ns)
        if cells["size"] > most:
            raise ContainerError(f"claims {cells['size']:,} cells, more than the {most:,} of its spec")


@lru_cache(maxsize=1024)
def _cells_of(spec: Path, changed: int) -> int:
    try:
        return build_protocol(CollectionSpec.load(spec)).mechanism.statistic_size
    except ValueError:  # whoever needs the spec says what is wrong with it
        return MAX_CELLS


def sound_header(value: Mapping[str, Any]) -> PaneHeader:
    """Read the header of a statistic from its value, without cells; Exception if no job can have written it."""
    return _checked(PaneHeader(**PaneHeader.header_from_avro(value)))


def sound_counts(value: Mapping[str, Any]) -> PaneHeader:
    """Read a statistic, or a header without cells, from its value; Exception if no job can have written it."""
    statistic = _checked(counts_from_avro(value))
    if isinstance(statistic, Statistic):
        most = _STEP_LIMIT * statistic.n
        if not -most <= int(statistic.cells.min()) <= int(statistic.cells.max()) <= most:
            raise ValueError("the cells are impossible")
    elif not statistic.apart:
        raise ValueError("the cells are missing")
    return statistic


def sound_description(value: Mapping[str, Any]) -> Estimate:
    """Read an estimate without its tables from its value; Exception if no job can have written it."""
    return _checked(Estimate.from_avro({**value, "tables": ()}))


def sound_estimate(value: Mapping[str, Any]) -> Estimate:
    """Read an estimate from its value; Exception if no job can have written it."""
    estimate = _checked(Estimate.from_avro(value))
    if estimate.n < 1 or not estimate.tables:
        raise ValueError("n is 0, or there is no table")
    if len({(table.name, table.of) for table in estimate.tables}) < len(estimate.tables):
        raise ValueError("two tables hold the same quantity")
    for table in estimate.tables:
        _check_table(table, estimate.n)
        if table.name in (TableName.VISIBLE, TableName.BAND):
            share = estimate.table(TableName.SHARE, table.of)
            if share is None or share.shape != table.shape:
                raise ValueError("a table is about other values than the shares")
    return estimate


def _checked(pane: PaneRecord) -> PaneRecord:
    signals = pane.signals
    numbers = [*pane.accounting.to_avro().values(), *signals.early, *signals.past]
    if not _FIRST_TIME <= pane.window_start < pane.window_end <= _LAST_TIME or min(numbers) < 0:
        raise ValueError("the window or the accounting are impossible")
    if max(len(signals.early), len(signals.past)) > SKEW_RANGES:
        raise ValueError("too many ranges of clock skew")
    return pane


def _bounded(figures: Floats) -> bool:
    """Return whether all are numbers within the limit."""
    return bool((np.abs(figures) < _FIGURE_LIMIT).all())


def _check_table(table: Table, n: int) -> None:
    arrays, size = table.arrays, len(table.values)
    if min(table.shape, default=0) < 1 or math.prod(table.shape) != size:
        raise ValueError("a table has another shape than its values")
    if any(len(array) != size for array in arrays.values()) or not _bounded(np.concatenate([*arrays.values()])):
        raise ValueError("the figures or the errors of a table are impossible")
    ends = set() if table.basis is Basis.NONE else {"low", "high"}
    of_forgers = ends and {"low_forged", "high_forged"}
    if arrays.keys() - {"values", "stderr", "unbiased"} not in (ends, ends | of_forgers) or not 0 < table.level < 1:
        raise ValueError("the intervals of a table are impossible")
    if table.keys is not None and len(table.keys) != size:
        raise ValueError("a table has more or fewer keys than values")
    if table.stderr.min() < 0 or not 0 <= table.n <= n:
        raise ValueError("an error is negative, or the n of a table is impossible")
