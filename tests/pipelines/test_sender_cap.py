"""A cap on the reports of a sender counts as many of each in a stream as in a backfill, and whatever is killed when."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.build import HOUR, MINUTE, START
from uldp.pipelines.audit.audit import audit
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.settings import JobSettings
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.arrays import Counts
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import SENDER, Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.local.stream import LocalStream

HOURS, CAP = 3, 4
#: Senders, of whom a few send most reports. Each has symbols of its own, so that counts say who was counted.
SENDERS, REPORTS = 20, 300
SPEC = f"""
collection: capped
version: 1
domain: {{size: {SENDERS}}}
mechanism: {{name: identity}}
window: {{size: 1h, early_every: 1s, allowed_lateness: 30m}}
limits: {{min_reports: 1, max_reports_per_sender: {CAP}, cap_senders: true}}
"""


def schedule() -> tuple[list[Message], Counts]:
    """Reports of some hours, out of order, each fifth of them twice; and how many each sender has in each hour."""
    rng = np.random.default_rng(7)
    senders = np.minimum(rng.geometric(0.2, REPORTS) - 1, SENDERS - 1)
    times = START + rng.integers(HOURS * HOUR, size=REPORTS)
    messages = []
    for number, (sender, time) in enumerate(zip(senders.tolist(), times.tolist(), strict=True)):
        data = Report("capped", 1, rng.bytes(16), time, sender).encode()
        copies = 2 if number % 5 == 0 else 1
        messages += [
            Message(data, time + int(rng.integers(20 * MINUTE)), {SENDER: f"s{sender}"}) for _ in range(copies)
        ]
    sent = np.zeros((HOURS, SENDERS), dtype=np.int64)
    np.add.at(sent, ((times - START) // HOUR, senders), 1)
    return sorted(messages, key=lambda message: message.publish_time), sent


def archive(messages: Sequence[Message], place: Path, segments: int = 1) -> LocalStream:
    stream = LocalStream.create(place, simulated_clock=True)
    for part in np.array_split(np.arange(len(messages)), segments):
        stream.append([messages[row] for row in part])
    stream.close()
    return stream


def spec_of(folder: Path, text: str) -> CollectionSpec:
    (folder / "spec.yaml").write_text(text, encoding="utf-8")
    return CollectionSpec.load(folder / "spec.yaml")


def check(panes: Sequence[Statistic], messages: Sequence[Message], sent: Counts) -> None:
    """Each sender is counted in each hour up to the cap, and each report has one outcome."""
    counted = np.minimum(sent, CAP)
    assert [pane.cells.tolist() for pane in panes] == counted.tolist()
    total = sum((pane.accounting for pane in panes), Accounting())
    copies, over = len(messages) - REPORTS, REPORTS - int(counted.sum())
    assert total == Accounting(len(messages), int(counted.sum()), duplicate=copies, rejected=over)


@pytest.mark.slow
def test_a_stream_counts_as_many_of_each_sender_as_a_backfill(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, SPEC)
    messages, sent = schedule()
    stream = archive(messages, tmp_path / "stream", segments=4)
    jobs.follow([spec], stream.path, tmp_path / "out", jobs.pipeline_options([]), JobSettings(say=print))
    jobs.backfill([spec], stream.path, tmp_path / "all", jobs.pipeline_options(["--runner=DirectRunner"]))
    for folder in ("out", "all"):
        check(newest(ResultsFolder(tmp_path / folder).statistics()), messages, sent)
        records = [*ResultsFolder(tmp_path / folder).rejected()]
        over = Counter[str]()
        for record in records:
            over[record.attributes[SENDER]] += record.reports
        expected = (sent - np.minimum(sent, CAP)).sum(axis=0)
        assert over == Counter({f"s{sender}": n for sender, n in enumerate(expected.tolist()) if n})
        assert {record.reason for record in records} == {Reason.OVER_SENDER_LIMIT}
        assert not audit(FilesEndpoint(str(stream.path)), tmp_path / folder).faults
    free = spec_of(tmp_path, SPEC.replace("cap_senders: true", "cap_senders: false"))
    kept = [Message(body, time) for record in records for body, time in record.each()]
    archive(kept, tmp_path / "kept")
    jobs.backfill([free], tmp_path / "kept", tmp_path / "others", jobs.pipeline_options([]))
    others = newest(ResultsFolder(tmp_path / "others").statistics())
    assert [pane.cells.tolist() for pane in others] == (sent - np.minimum(sent, CAP)).tolist()


@pytest.mark.nightly
def test_counts_of_senders_are_exact_whatever_is_killed_when(tmp_path: Path) -> None:
    spec_of(tmp_path, SPEC)
    messages, sent = schedule()
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    command = [sys.executable, "-c", "from uldp.pipelines.cli import main; main()", "stream", "--spec", "spec.yaml"]
    command += ["--from", "stream", "--to", "out", "--watermark-delay", "1m"]
    randomness = random.Random(3)
    parts = np.array_split(np.arange(len(messages)), 4)
    for part in parts[:-1]:
        stream.append([messages[row] for row in part])
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=randomness.uniform(3.0, 7.0))
        except subprocess.TimeoutExpired:
            process.kill()
        assert process.wait() == -9  # it was at work: the stream is not closed yet
    stream.append([messages[row] for row in parts[-1]])
    stream.close()
    subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    check(newest(ResultsFolder(tmp_path / "out").statistics()), messages, sent)
