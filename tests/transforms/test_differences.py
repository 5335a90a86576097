"""Panes on a stream that the test writes event by event: no two public ones differ by fewer than ``min_reports``."""

from itertools import combinations
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import MINUTE, START
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.coders import MessageCoder
from uldp.transforms.io.results import WriteResults

LEAST = 3
SIZE = 64
SPEC = build.spec(
    domain={"size": SIZE},
    mechanism={"name": "identity"},
    window={"size": "1h", "early_every": "10s", "allowed_lateness": "30m"},
    limits={"min_reports": LEAST},
)


def reports(first: int, end: int, minute: float, published: float | None = None) -> list[Message]:
    """Report n names symbol n, so that a difference names its reports."""
    moment = None if published is None else START + int(published * MINUTE)
    sent = [build.report(n, n, START + int(minute * MINUTE), SPEC.key) for n in range(first, end)]
    return [build.message(report, moment) for report in sent]


def at(minute: float) -> Timestamp:
    return Timestamp(micros=(START + int(minute * MINUTE)) * 1000)


class Script:
    """Sends each report once."""

    def __init__(self) -> None:
        created = ScriptedStream(coder=MessageCoder()).with_output_types(Message)
        self.stream: Any = created.advance_watermark_to(at(0))
        self.sent = 0

    def send(self, n: int, minute: float, published: float | None = None) -> "Script":
        self.stream = self.stream.add_elements(reports(self.sent, self.sent + n, minute, published))
        self.sent += n
        return self

    def tick(self) -> "Script":
        self.stream = self.stream.advance_processing_time(11)
        return self

    def until(self, minute: float) -> "Script":
        self.stream = self.stream.advance_watermark_to(at(minute))
        return self

    def run(self, out: Path, spec: CollectionSpec = SPEC) -> list[Statistic]:
        """Return the panes whose cells are public, in their order."""
        stream = self.stream.advance_watermark_to_infinity()
        with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
            _ = pipeline | stream | JobAggregate([spec]) | WriteResults(str(out))
        panes = [pane for pane in ResultsFolder(out).panes() if isinstance(pane, Statistic)]
        return sorted(panes, key=lambda pane: pane.pane.revision)


def shape(panes: list[Statistic]) -> list[tuple[str, int]]:
    return [(pane.pane.kind.value, pane.n) for pane in panes]


def isolated(panes: list[Statistic]) -> list[int]:
    """How many reports each difference of two panes is about, of those it may not be about."""
    cells = [np.zeros(SIZE, dtype=np.int64), *(np.resize(pane.cells, SIZE) for pane in panes)]
    return [n for one, other in combinations(cells, 2) if 0 < (n := int(np.abs(other - one).sum())) < LEAST]


def test_early_panes_stay_one_step_behind(tmp_path: Path) -> None:
    script = Script()
    for _ in range(10):
        script.send(1, 5).tick()
    panes = script.run(tmp_path)
    assert shape(panes) == [("early", 3), ("early", 6), ("on_time", 10)]
    assert not isolated(panes)
    assert not (tmp_path / "few").exists()
    assert [pane.supersedes and pane.supersedes.n for pane in panes] == [None, 3, 6]
    assert {estimate.n for estimate in ResultsFolder(tmp_path).estimates()} == {3, 6, 10}
    for pane in panes:
        assert pane.accounting.received == pane.accounting.counted == pane.n


def test_one_report_at_each_firing_isolates_nobody(tmp_path: Path) -> None:
    script = Script()
    for n in (1, 2, 0, 4, 1, 1, 0, 7, 2, 1, 3, 1):
        if n:
            script.send(n, 5)
        script.tick()
    panes = script.run(tmp_path)
    assert panes[-1].n == script.sent
    assert [kind for kind, _ in shape(panes)].count("early") >= 3
    assert not isolated(panes)


@pytest.mark.parametrize("least", [1, 2])
def test_a_spec_without_a_least_number_of_reports_publishes_all_that_came(least: int, tmp_path: Path) -> None:
    spec = build.spec(**SPEC.model_dump(mode="json", exclude={"limits"}), limits={"min_reports": least})
    script = Script()
    for _ in range(3):
        script.send(1, 5).tick()
    wanted = {1: [("early", 1), ("early", 2), ("early", 3), ("on_time", 3)], 2: [("on_time", 3)]}
    assert shape(script.run(tmp_path, spec)) == wanted[least]
