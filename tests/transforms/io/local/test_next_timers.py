"""Beam's local runner asks the keys of a step for timers only if one of them is due."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.build import HOUR, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import PaneHeader
from uldp.transforms.internals import transform_watermarks
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.local.waiting import Waiting

COLLECTIONS, SEGMENTS = 8, 12


def follow(folder: Path) -> list[PaneHeader]:
    """The panes of a job of some collections, whose segments come one by one, three in each slice.

    Their windows slide, and so each collection has a key of its own.
    """
    names = [f"c{number}" for number in range(COLLECTIONS)]
    stream = LocalStream.create(folder / "stream", simulated_clock=True)
    for segment in range(SEGMENTS):
        now = START + segment * 2 * HOUR
        numbers = enumerate(names, segment * COLLECTIONS)
        stream.append([message(report(number, number % 5, now, (name, 1)), now) for number, name in numbers])
    stream.close()
    specs = [spec(collection=name, window={"size": "12h", "period": "6h", "allowed_lateness": "2h"}) for name in names]
    with mock.patch.object(Waiting, "MAX_SEGMENTS", 1):
        jobs.follow(specs, stream.path, folder / "out", jobs.pipeline_options([]))
    return list(ResultsFolder(folder / "out", refuse).panes())


def asked(folder: Path) -> tuple[list[PaneHeader], int]:
    """The panes of the job, and how often the runner looked through the timers of a step that has keys."""
    watermarks, looks = transform_watermarks(), [0]
    extract = watermarks.extract_transform_timers

    def watched(step: Any) -> Any:
        looks[0] += len(step._keyed_states) >= COLLECTIONS
        return extract(step)

    with mock.patch.object(watermarks, "extract_transform_timers", watched):
        return follow(folder), looks[0]


@pytest.mark.slow
def test_results_are_the_same_and_the_runner_looks_seldom(tmp_path: Path) -> None:
    with mock.patch.object(jobs, "next_timers", nullcontext):
        expected, often = asked(tmp_path / "often")
    found, seldom = asked(tmp_path / "seldom")
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    slices = {(START + segment * 2 * HOUR) // (6 * HOUR) for segment in range(SEGMENTS)}
    windows = slices | {each - 1 for each in slices}
    assert len(found) == COLLECTIONS * len(windows)
    assert 0 < 3 * seldom < often
    # The windows that end with the stream share a file.
    files = [len(list((tmp_path / each / "out" / "counts").iterdir())) for each in ("seldom", "often")]
    assert files[0] < files[1]
