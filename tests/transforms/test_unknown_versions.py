"""A version that the graph does not know: its statistic must fail the job and not vanish between the branches."""

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.util import assert_that, equal_to

from tests import build
from uldp.schemas.pane import Accounting
from uldp.transforms.aggregate import CountWindows
from uldp.transforms.count import KeyedSpan
from uldp.transforms.internals import WindowedValue
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
