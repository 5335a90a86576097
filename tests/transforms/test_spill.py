"""Columns that are grouped through files are those that were given, whatever fails under way."""

from collections.abc import Iterable
from pathlib import Path

import apache_beam as beam
import numpy as np
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from uldp.collector.columns import MixedColumns
from uldp.transforms.spill import FileRange, GroupColumns, _SpillFn, read_columns


def columns(first: int, n: int) -> MixedColumns:
    """Reports whose ids count up, with bits."""
    ids = np.arange(first, first + 2 * n, dtype=np.uint64).reshape(n, 2)
    payloads = np.arange(3 * n, dtype=np.uint8).reshape(n, 3)
    of_c = build.columns(ids, np.arange(n), payloads, signals=1)
    return MixedColumns((of_c, build.columns(ids + np.uint64(100), signals=1, key=("d", 1))))


def first_ids(element: tuple[int, Iterable[FileRange]]) -> tuple[int, list[list[tuple[str, list[int]]]]]:
    shard, extents = element
    parts = [[(part.collection, part.report_ids[:, 0].tolist()) for part in read_columns(extent)] for extent in extents]
    return shard, sorted(parts)


def both(*ids: int) -> list[tuple[str, list[int]]]:
    return [("c", list(ids)), ("d", [id_ + 100 for id_ in ids])]


ELEMENTS = [(0, columns(0, 2)), (1, columns(10, 1)), (0, columns(20, 3)), (0, columns(40, 0))]


def test_columns_are_grouped_by_key(tmp_path: Path) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        given = pipeline | beam.Create(ELEMENTS).with_output_types(tuple[int, MixedColumns])
        grouped = given | GroupColumns(tmp_path) | beam.Map(first_ids)
        assert_that(grouped, equal_to([(0, [both(), both(0, 2), both(20, 22, 24)]), (1, [both(10)])]))


def test_a_bundle_that_fails_leaves_what_the_next_one_writes_alone(tmp_path: Path) -> None:
    spill = _SpillFn(tmp_path)
    spill.start_bundle()
    list(spill.process((0, columns(0, 2))))
    spill.start_bundle()
    [(shard, extent)] = spill.process((0, columns(20, 3)))
    spill.finish_bundle()
    assert first_ids((shard, [extent])) == (0, [both(20, 22, 24)])
    assert len(list(tmp_path.iterdir())) == 2
