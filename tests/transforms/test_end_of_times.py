"""Times at the end of the admitted range: each window that holds one has a name and a text."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from tests import build
from uldp.collector.collections import YEAR_9000
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.results.write import WriteResults

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
