"""Bounded jobs: panes without reports, versions that the graph does not know, and times at the end of the range."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from uldp.collector.collections import YEAR_9000
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.aggregate import Aggregate, CountWindows
from uldp.transforms.count import KeyedSpan
from uldp.transforms.internals import WindowedValue
from uldp.transforms.io.results.write import WriteResults
from uldp.transforms.windows import at_time

PART = build.part(accounting=Accounting(received=1, rejected=1)).at(build.START)
SPECS = [build.spec(version=1), build.spec(version=2, window={"size": "1d"})]


def at_start(span: KeyedSpan) -> WindowedValue:
    return at_time(build.START, span)


def count(version: int) -> None:
    with beam.Pipeline(BundleBasedDirectRunner(), PipelineOptions([])) as pipeline:
        spans = (
            pipeline
            | beam.Create([((("c", version), build.START), PART)])
            | beam.Map(at_start).with_output_types(KeyedSpan)
        )
        counts = spans | "CountWindows" >> CountWindows(SPECS)
        assert_that(counts | beam.Map(lambda pane: pane.version), equal_to([version]))


@pytest.mark.parametrize("version", [1, 2])
def test_each_version_of_the_graph_is_in_one_branch(version: int) -> None:
    count(version)


def test_another_version_fails_the_job() -> None:
    with pytest.raises(Exception, match="the graph has no windows for collection 'c' version 3; start the job again"):
        count(3)


#: The year 10000 in milliseconds, which no text of a time can have.
END_OF_TEXT = 253_402_300_800_000


def backfill(out: Path, window: dict[str, str], *messages: Message) -> list[Accounting]:
    spec = build.spec(window=window)
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create(messages) | Aggregate([spec]) | WriteResults(str(out))
    return [pane.accounting for pane in ResultsFolder(out).statistics()]


WINDOWS: list[dict[str, str]] = [{"size": "1h"}, {"size": "2d", "period": "1d"}, {"size": "365000d"}]


@pytest.mark.parametrize("window", WINDOWS)
def test_a_report_of_the_last_millisecond_is_counted(window: dict[str, Any], tmp_path: Path) -> None:
    last = build.message(build.report(1, 1, YEAR_9000 - 1))
    panes = backfill(tmp_path, window, last)
    assert panes == [Accounting(received=1, counted=1)] * len(panes) != []


@pytest.mark.parametrize("window", WINDOWS)
def test_a_report_of_the_last_year_of_text_is_rejected(window: dict[str, Any], tmp_path: Path) -> None:
    """Its window would end in the year 10000, and ended the job."""
    late = build.message(build.report(1, 1, END_OF_TEXT - 1))
    backfill(tmp_path, window, late)
    assert [record.reason for record in ResultsFolder(tmp_path).rejected()] == ["invalid_time"]
