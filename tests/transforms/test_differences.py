"""Panes on a stream that the test writes event by event: no two public ones differ by fewer than ``min_reports``."""

from itertools import islice
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.differences import estimated, isolated
from uldp.pipelines.audit.found import Found
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest, waiting
from uldp.pipelines.results.prune import prune
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import HELD_BACK, unpublished_text
from uldp.schemas.pane import Accounting, PaneHeader, Superseded
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.coders import MessageCoder
from uldp.transforms.io.results.write import WriteResults

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

    def run(self, out: Path, spec: CollectionSpec = SPEC, *, newest_only: bool = False) -> list[Statistic]:
        """Return the panes whose cells are public, in their order."""
        stream = self.stream.advance_watermark_to_infinity()
        with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
            _ = pipeline | stream | JobAggregate([spec]) | WriteResults(str(out), newest_only=newest_only)
        keep_specs(str(out), [spec])
        panes = [pane for pane in ResultsFolder(out).panes() if isinstance(pane, Statistic)]
        return sorted(panes, key=lambda pane: pane.pane.revision)


def shape(panes: list[Statistic]) -> list[tuple[str, int]]:
    return [(pane.pane.kind.value, pane.n) for pane in panes]


def test_early_panes_stay_one_step_behind(tmp_path: Path) -> None:
    script = Script()
    for _ in range(10):
        script.send(1, 5).tick()
    panes = script.run(tmp_path)
    assert shape(panes) == [("early", 3), ("early", 6), ("on_time", 10)]
    assert not isolated(tmp_path, LEAST)
    assert not (tmp_path / "few").exists()
    assert [pane.supersedes and pane.supersedes.n for pane in panes] == [None, 3, 6]
    assert {estimate.n for estimate in ResultsFolder(tmp_path).estimates()} == {3, 6, 10}
    for pane in panes:
        assert pane.accounting.received == pane.accounting.counted == pane.n


@pytest.mark.parametrize("seed", range(2))
def test_whatever_comes_no_two_public_files_isolate_few_reports(seed: int, tmp_path: Path) -> None:
    """Windows of an hour, which take reports for half an hour more, while the next one has early panes."""
    rng, script = np.random.default_rng(seed), Script()
    for minute in range(6, 130, 6):
        for of in {minute, max(minute - 25, 0)}:
            if n := int(rng.integers(0, 3)):
                script.send(n, of - 1, published=minute)
        script.tick() if rng.random() < 0.7 else None
        script.until(minute)
    panes = script.run(tmp_path)
    assert not isolated(tmp_path, LEAST)
    kinds = [kind for kind, _ in shape(panes)]
    assert min(kinds.count("early"), kinds.count("late"), kinds.count("on_time")) > 0
    assert {pane["n"] for pane in estimated(tmp_path)} == {pane.n for pane in panes if pane.n >= LEAST}
    whole = newest(ResultsFolder(tmp_path, private=tmp_path).statistics())
    assert sum(pane.n for pane in whole) == script.sent


def test_panes_as_they_come_isolate_single_reports(tmp_path: Path) -> None:
    """The test above can fail."""
    script = Script()
    for _ in range(6):
        script.send(1, 5).tick()
    panes = script.run(tmp_path, build.spec(**SPEC.model_dump(mode="json", exclude={"limits"}, exclude_none=True)))
    assert len(panes) == 7
    assert len({each.files for each in isolated(tmp_path, LEAST) if each.reports == 1}) >= 5


def late_one_by_one(n: int) -> Script:
    """Five reports come in time, and n one after the other while the window takes late ones."""
    script = Script().send(5, 5).until(60)
    for minute in range(61, 61 + n):
        script.send(1, 59, published=minute).until(minute)
    return script


def test_what_is_left_is_apart_with_an_accounting_that_says_so(tmp_path: Path) -> None:
    late_one_by_one(5).run(tmp_path)
    apart = newest(ResultsFolder(tmp_path).panes())
    assert [(type(pane), pane.n, pane.flags) for pane in apart] == [(PaneHeader, 10, ("few_more",))]
    assert apart[0].supersedes == Superseded(apart[0].pane.revision - 1, 9)
    (whole,) = newest(ResultsFolder(tmp_path, private=tmp_path).statistics())
    assert whole.cells.tolist() == [1] * 10 + [0] * (SIZE - 10)
    (public,) = newest(ResultsFolder(tmp_path).statistics())
    assert public.n == 8
    found = ResultsFolder(tmp_path).current()
    assert ([each.n for each in found.estimates], found.unpublished) == ([8], [])
    (held,) = (unpublished_text(pane, HELD_BACK) for pane in found.held)
    assert "late reports wait until more have come\n  n 10  pane late" in held
    (line,) = waiting(found, ResultsFolder(tmp_path).specs)
    assert line.endswith(" v1, windows that wait for more reports: 1 whose estimate leaves late reports out")


def test_a_pane_that_only_amends_the_accounting_is_published(tmp_path: Path) -> None:
    script = late_one_by_one(0).until(90).send(1, 59, published=90)
    panes = script.run(tmp_path)
    assert shape(panes) == [("on_time", 5), ("late", 5)]
    assert panes[-1].accounting == Accounting(received=6, counted=5, late=1)


def test_a_spec_may_ask_for_exact_late_panes(tmp_path: Path) -> None:
    keys = SPEC.model_dump(mode="json", exclude_none=True)
    spec = CollectionSpec.parse(keys | {"window": keys["window"] | {"exact_late": True}})
    assert shape(late_one_by_one(2).run(tmp_path, spec)) == [("on_time", 5), ("late", 6), ("late", 7)]


def test_a_job_that_keeps_newest_panes_keeps_the_published_one(tmp_path: Path) -> None:
    late_one_by_one(2).run(tmp_path, newest_only=True)
    assert [pane.n for pane in ResultsFolder(tmp_path).panes()] == [5, 7]
    assert [pane.n for pane in ResultsFolder(tmp_path).estimates()] == [5]


@pytest.mark.parametrize(("late", "kept"), [(2, [5, 7]), (3, [8]), (4, [8, 9])])
def test_prune_keeps_what_is_published_and_what_waits(late: int, kept: list[int], tmp_path: Path) -> None:
    late_one_by_one(late).run(tmp_path)
    (tmp_path / "job.json").write_bytes(JobIdentity("stream", "s", "c", {}).encode())
    prune(tmp_path, before=0)
    assert [pane.n for pane in ResultsFolder(tmp_path).panes()] == kept
    assert [pane.n for pane in ResultsFolder(tmp_path).estimates()] == kept[:1]
    found = Found.read(tmp_path, tmp_path, Signed(), refuse)
    assert (found.lacking, [pane.n for pane in found.panes.values()]) == ([], kept[-1:])


SLIDING = build.spec(
    domain={"size": 1000},
    mechanism={"name": "identity"},
    window={"size": "6h", "period": "1h", "allowed_lateness": "1h"},
    limits={"min_reports": 10},
)


def hours_of(out: Path) -> dict[int, tuple[str, ...]]:
    """The flags of the newest pane of each window, by the hour at which it begins."""
    return {(pane.window_start - START) // HOUR: pane.flags for pane in newest(ResultsFolder(out).panes())}


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(("an_hour", "period"), [(4, 3), (10, 1), (1, 0)])
def test_sliding_windows_isolate_no_few_reports(an_hour: int, period: int, live: bool, tmp_path: Path) -> None:
    """The same windows are published of a stream and of a backfill: those that begin with enough reports."""
    numbers = iter(range(1000))
    hours = [
        [build.message(build.report(n, n, START + hour * HOUR, SLIDING.key)) for n in islice(numbers, an_hour)]
        for hour in range(24)
    ]
    if live:
        stream: Any = ScriptedStream(coder=MessageCoder()).with_output_types(Message).advance_watermark_to(at(0))
        for hour, messages in enumerate(hours):
            stream = stream.add_elements(messages).advance_watermark_to(at(60 * hour + 59))
        source = stream.advance_watermark_to_infinity()
        runner, options = "BundleBasedDirectRunner", PipelineOptions(["--streaming"])
    else:
        source = beam.Create([each for messages in hours for each in messages])
        runner, options = "FnApiRunner", PipelineOptions()
    with beam.Pipeline(runner, options=options) as pipeline:
        _ = pipeline | source | JobAggregate([SLIDING]) | WriteResults(str(tmp_path))
    assert not isolated(tmp_path, 10, files=3)
    flags = hours_of(tmp_path)
    assert sorted(flags) == list(range(-5, 24))
    first = (START // HOUR) % 6
    # Windows of which a part is before the first report, or after the last, have no reports at an end. Those that begin
    # every six hours share nothing with one another, and are published if they have enough.
    public = [hour for hour in range(19) if period and (first + hour) % period == 0]
    assert [hour for hour, raised in flags.items() if not raised and hour in range(19)] == public
    assert {(first + hour) % 6 for hour, raised in flags.items() if not raised and hour not in range(19)} <= {0}
    found = {(estimate.window_start - START) // HOUR: estimate.n for estimate in ResultsFolder(tmp_path).estimates()}
    assert {hour: n for hour, n in found.items() if hour in range(19)} == dict.fromkeys(public, 6 * an_hour)
    whole = newest(ResultsFolder(tmp_path, private=tmp_path).statistics())
    assert sum(pane.n for pane in whole) == 6 * 24 * an_hour
