"""A sender that dates each report of a batch to a window of its own gets neither many windows nor many files."""

from pathlib import Path

import numpy as np
import pytest

from tests.build import HOUR, START
from tests.pipelines.command import Run
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

SPEC = """
collection: c
version: 1
domain: {size: 5}
mechanism: {name: rr, epsilon: 1.0}
window: {size: 1h}
"""


def batch(first: int, hours: int, size: int = 5, each: int = 1) -> Message:
    """Reports of each hour from ``first`` hours before ``START`` on, backwards."""
    rng = np.random.default_rng(first)
    ids = rng.integers(0, 1 << 63, (hours * each, 2), np.uint64)
    times = np.repeat(START - HOUR * np.arange(first, first + hours, dtype=np.int64), each)
    return Message(encode_batch("c", 1, ids, times, rng.integers(0, size, hours * each, np.uint32)), START)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "received", "windows", "files", "ratio"),
    [([batch(0, 4_000)], 4_000, 600, 10, 2), ([batch(0, 300), batch(300, 300)], 600, 600, 10, 7)],
    ids=["one message", "two messages"],
)
def test_a_batch_that_names_thousands_of_windows(
    messages: list[Message], received: int, windows: int, files: int, ratio: float, uldp: Run, tmp_path: Path
) -> None:
    """One message above the limit of windows, and two below.

    Measured with 4,000 hours of 5 values in one message of 112 kB: before, 8,003 files of 43 MB, 388 times the input,
    in 12.6 s. Without docs in headers, 16.9 MB. With shared files and the limit for each message, 6 files of 0.31 MB,
    2.8 times the input, in 2 s; 3,400 reports are rejected. The journal adds some 40 bytes a pane, and headers of panes
    in the headers of files as much.
    """
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append(messages)
    stream.close()
    (tmp_path / "spec.yaml").write_text(SPEC + "limits: {min_reports: 1}\n")
    code, text, _ = uldp(
        "backfill", "--spec", tmp_path / "spec.yaml", "--from", tmp_path / "stream", "--to", tmp_path / "out"
    )
    assert code == 0
    assert f"{windows:,} of {windows:,} windows count fewer than 10 reports" in text
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(written) < files
    assert sum(path.stat().st_size for path in written) < ratio * sum(len(message.data) for message in messages)
    panes = newest(ResultsFolder(tmp_path / "out").statistics())
    assert [pane.window_start for pane in panes] == [START - hour * HOUR for hour in reversed(range(windows))]
    total = sum((pane.accounting for pane in panes), Accounting())
    assert total == Accounting(received=received, counted=windows, rejected=received - windows)
    code, text, _ = uldp("show", tmp_path / "out", "--last", "3")
    assert code == 0
    assert text.count("  auto\n") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("messages", "estimates"),
    [([(0, 300, 1), (300, 300, 1)], 0), ([(0, 40, 100)], 40)],
    ids=["two messages", "windows of 100 reports"],
)
def test_by_default_the_output_is_a_small_multiple_of_the_input(
    messages: list[tuple[int, int, int]], estimates: int, uldp: Run, tmp_path: Path
) -> None:
    """Measured with 5 and 10,000 values: 0.76 and 0.87 times the input, 1.79 and 2.39.

    Before panes of few reports were compressed: 6.5 times, and 1.7 and 116 times.
    """
    sent = [batch(first, hours, 10_000, each) for first, hours, each in messages]
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append(sent)
    stream.close()
    (tmp_path / "spec.yaml").write_text(SPEC.replace("size: 5", "size: 10000"))
    command = ("backfill", "--spec", tmp_path / "spec.yaml", "--from", tmp_path / "stream", "--to", tmp_path / "out")
    assert uldp(*command)[0] == 0
    assert len([*ResultsFolder(tmp_path / "out").estimates()]) == estimates
    written = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert written < 4 * sum(len(message.data) for message in sent)
