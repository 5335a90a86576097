"""Columns that are grouped through files are those that were given, whatever fails under way."""

from collections.abc import Iterable
from pathlib import Path

import apache_beam as beam
import numpy as np
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from uldp.collector.columns import ReportColumns
from uldp.transforms.spill import FileRange, GroupColumns, _SpillFn, read_columns


def columns(first: int, n: int) -> ReportColumns:
    """Reports whose ids count up, with bits."""
    ids = np.arange(first, first + 2 * n, dtype=np.uint64).reshape(n, 2)
    payloads = np.arange(3 * n, dtype=np.uint8).reshape(n, 3)
    return build.columns(ids, np.arange(n), payloads, signals=1)


def first_ids(element: tuple[str, Iterable[FileRange]]) -> tuple[str, list[list[int]]]:
    key, extents = element
    return key, sorted(read_columns(extent).report_ids[:, 0].tolist() for extent in extents)


ELEMENTS = [("a/0", columns(0, 2)), ("a/1", columns(10, 1)), ("a/0", columns(20, 3)), ("a/0", columns(40, 0))]


def test_columns_are_grouped_by_key(tmp_path: Path) -> None:
    with beam.Pipeline("FnApiRunner") as pipeline:
        given = pipeline | beam.Create(ELEMENTS).with_output_types(tuple[str, ReportColumns])
        grouped = given | GroupColumns(tmp_path) | beam.Map(first_ids)
        assert_that(grouped, equal_to([("a/0", [[], [0, 2], [20, 22, 24]]), ("a/1", [[10]])]))


def test_a_bundle_that_fails_leaves_what_the_next_one_writes_alone(tmp_path: Path) -> None:
    spill = _SpillFn(tmp_path)
    spill.start_bundle()
    list(spill.process(("a/0", columns(0, 2))))
    spill.start_bundle()
    [(key, extent)] = spill.process(("a/0", columns(20, 3)))
    spill.finish_bundle()
    assert first_ids((key, [extent])) == ("a/0", [[20, 22, 24]])
    assert len(list(tmp_path.iterdir())) == 2
