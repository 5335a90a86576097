"""What a running job says, and when."""

import pickle
import threading
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from tests import build
from tests.build import HOUR, START
from tests.pane_files import statistic_file
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.jobs.progress import Heartbeat, pane_line, pane_lines, position, progress_of, summary
from uldp.pipelines.jobs.settings import JobSettings
from uldp.schemas.flags import MEANING, Flag
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.schemas.specs.window import WindowSpec
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.local.stream import LocalStream

SPEC = build.spec(domain={"labels": ["often", "ne\x1b[2Jver"]}, limits={"min_reports": 200})
COUNTS = build.pane([30, 70], revision=2, accounting=Accounting(107, 100, 4, 2, 1))
ESTIMATE = build.estimate(COUNTS, [0.3, 0.7], [0.03, 0.02])


def test_a_pane_names_its_largest_value_by_its_label_which_does_not_command_a_terminal() -> None:
    line = "2026-01-01 09:00  on time #2   n     100  duplicate   4  late   2  rejected   1"
    assert pane_line(ESTIMATE, SPEC) == f"{line}  ne\N{REPLACEMENT CHARACTER}[2Jver 70.00±2.00 %"


def test_the_early_panes_of_a_bundle_have_one_line() -> None:
    """A day every minute has 1,440 of them every few seconds."""
    windows = [
        build.pane([30, 70], start=START + hour * HOUR, kind=kind)
        for kind in ("on_time", "early", "late")
        for hour in (0, 2, 1)
    ]
    lines = list(pane_lines([build.estimate(pane, [0.3, 0.7], [0.03, 0.02]) for pane in windows], SharedSpecs([SPEC])))
    assert [(line[:16], line[18:25].strip(), "2 earlier windows" in line) for line in lines] == [
        ("2026-01-01 09:00", "on time", False),
        ("2026-01-01 11:00", "on time", False),
        ("2026-01-01 10:00", "on time", False),
        ("2026-01-01 11:00", "early", True),
        ("2026-01-01 11:00", "late", True),
    ]


HALF = WindowSpec.model_validate({"size": "30m"})


@pytest.mark.parametrize(
    ("ahead", "watermark", "then"),
    [
        (7, START, "7 segments to go"),
        (0, None, "no watermark yet"),
        (
            0,
            START + 1,
            "watermark 2026-01-01T09:00:00.001Z, the next window can fire when it reaches 2026-01-01T09:30:00Z",
        ),
    ],
)
def test_position(ahead: int, watermark: int | None, then: str) -> None:
    line = position([SPEC.window, HALF], messages=1200, segments=1, ahead=ahead, watermark=watermark)
    assert line.startswith("nothing new at 20")
    assert line.endswith(f"Z: 1,200 messages of 1 segment read, {then}")


def test_position_of_a_clock_that_was_wrong() -> None:
    line = position([SPEC.window], messages=1, segments=1, ahead=0, watermark=START, early_ms=259_200_000)
    warning = "the watermark is ahead of the clock by 259,200 s, and reports until then count as late"
    assert line.endswith(f"the next window can fire when it reaches 2026-01-01T10:00:00Z; {warning}")


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


class TestHeartbeat:
    def test_a_line_begins_the_silence_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = mock.Mock(side_effect=[100.0, 107.0, 107.0, 107.0])
        monkeypatch.setattr("uldp.pipelines.jobs.progress.time.monotonic", clock)
        beat = Heartbeat(lambda line: None, lambda: "here")
        assert beat.silence_left() == pytest.approx(3)
        beat("pane")
        assert beat.silence_left() == pytest.approx(10)

    def test_stays_itself_where_beam_pickles_it(self) -> None:
        with Heartbeat(lambda line: None, lambda: "") as beat:
            assert pickle.loads(pickle.dumps(beat)) is beat


def test_a_job_of_a_cluster_says_how_many_panes_are_written(tmp_path: Path) -> None:
    assert progress_of(tmp_path).endswith(f"Z: 0 files of panes in {tmp_path}")
    name, content = statistic_file(COUNTS)
    write_file(str(tmp_path / name), content)
    (tmp_path / name).with_name(".half-written.avro").touch()
    assert progress_of(tmp_path).endswith(f"Z: 1 file of panes in {tmp_path}")


def test_a_job_says_where_it_is_until_its_stream_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "EVERY", 0.05)
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([Message(b"no report", START), Message(b"nor this", START + 1)])
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "2 messages of 1 segment read, watermark 2026-01-01T08:59:50.001Z, the next" in line:
            stream.close()

    settings = JobSettings(watermark_delay_ms=10_000, say=say)
    jobs.follow([SPEC], stream.path, tmp_path / "out", jobs.pipeline_options([]), settings)
    assert said[0] == f"following {stream.path} into {tmp_path / 'out'}: c v1"
    assert all(line.startswith("nothing new at ") for line in said[1:])
    assert "heartbeat" not in names_of_threads()


class TestSummary:
    def test_of_one_window(self, tmp_path: Path) -> None:
        keep_specs(str(tmp_path), [SPEC])
        name, content = statistic_file(replace(COUNTS, flags=("few_reports",)))
        write_file(str(tmp_path / name), content)
        assert summary(tmp_path).splitlines() == [
            "c v1: 1 window, 107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
            f"  flagged: 1 few_reports: {MEANING[Flag.FEW_REPORTS]}",
            "  no estimate is published of 1 window; uldp show names it",
            "in all: 107 received = 100 counted + 4 duplicate + 2 late + 1 rejected",
        ]

    def test_leaves_out_what_is_damaged(self, tmp_path: Path) -> None:
        keep_specs(str(tmp_path), [SPEC])
        for hour in (0, 1):
            start = START + hour * HOUR
            name, content = statistic_file(replace(COUNTS, window_start=start, window_end=start + HOUR))
            write_file(str(tmp_path / name), content if hour else content[:-20])
        (tmp_path / "rejected").mkdir()
        (tmp_path / "rejected" / "x.avro").write_bytes(b"")
        damaged: list[ValueError] = []
        assert summary(tmp_path, damaged.append).splitlines()[-1].startswith("in all: 107 received = 100 counted")
        assert [str(error).split(":")[0].removeprefix(f"{tmp_path}/")[:8] for error in damaged] == [
            "rejected",
            "counts/c",
        ]
