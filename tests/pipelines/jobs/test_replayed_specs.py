"""Reports that came before their spec opened: rejected, kept, sent again by uldp replay, and counted once.

Every report has a symbol of its own and no privacy, so that a right count is 1: a 2 is a double count, a 0 is a loss.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.build import MINUTE, START
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.spec_watch import SpecWatch
from uldp.pipelines.live.position import Position
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.replay import replay
from uldp.pipelines.status.status import Status
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.rejected import count_reasons
from uldp.transforms.io.local.stream import LocalStream

SPEC = """
collection: {}
version: {}
domain: {{size: 40}}
mechanism: {{name: identity}}
limits: {{min_reports: 1}}
window: {{size: 1h, allowed_lateness: 1h}}
"""
#: Segments before and after the spec is written, and the reports of it in each, of which one comes twice.
BEFORE, AFTER, REPORTS = 3, 4, 5


def segment(number: int, key: tuple[str, int]) -> list[Message]:
    """Reports of the new spec, and one of a spec that is there from the beginning."""
    published = START + number * MINUTE
    found = []
    for index in (0, *range(REPORTS)):
        symbol = REPORTS * number + index
        body = Report(*key, symbol.to_bytes(16, "big"), published, symbol).encode()
        found.append(Message(body, published + index))
    old = Report("old", 1, bytes([255, number]) * 8, published, number).encode()
    return [*found, Message(old, published + REPORTS)]


def until(condition: Callable[[], bool]) -> None:
    """Wait for what the job does."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("key", "reason"), [(("new", 1), Reason.UNKNOWN_COLLECTION), (("old", 2), Reason.UNKNOWN_VERSION)]
)
def test_reports_from_before_a_spec_opened_count_once_after_a_replay(
    key: tuple[str, int], reason: Reason, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SpecWatch, "EVERY", 0.0)
    monkeypatch.setattr(SpecWatch, "AT_ONCE", 0.0)
    specs, out = tmp_path / "specs", tmp_path / "out"
    specs.mkdir()
    (specs / "old.yaml").write_text(SPEC.format("old", 1))
    (specs / "bad.yaml").write_text("collection: [")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    folder = SpecFolder(str(specs), str(out))

    def send_again() -> int:
        return replay(ResultsFolder(out).rejected(), stream, max_attempts=5).sent

    def publish() -> tuple[Position | None, int, int]:
        """Go on with the stream as the job does; return how far it was, and how many reports were sent again."""
        try:
            for number in range(BEFORE):
                stream.append(segment(number, key))
            rejected = BEFORE * (REPORTS + 1)
            until(lambda: out.exists() and count_reasons(ResultsFolder(out).rejected())[reason] == rejected)
            until(lambda: Position.read(out) is not None)
            position = Position.read(out)
            (specs / "later.yaml").write_text(SPEC.format(*key))
            until(lambda: key in folder.specs)
            for number in range(BEFORE, BEFORE + AFTER):
                stream.append(segment(number, key))
            return position, send_again(), send_again()
        finally:
            stream.close()

    with ThreadPoolExecutor(1) as threads:
        published = threads.submit(publish)
        options = jobs.pipeline_options([])
        jobs.follow(folder, stream.path, out, options)
    position, *sent = published.result()

    assert sent == [BEFORE * REPORTS] * 2  # a copy is not sent again
    panes = {pane.key[:2]: pane for pane in newest(ResultsFolder(out).statistics())}
    symbols = np.arange(40)
    assert panes[key].cells.tolist() == (symbols < (BEFORE + AFTER) * REPORTS).tolist()
    assert panes["old", 1].cells.tolist() == (symbols < BEFORE + AFTER).tolist()
    # Copies of the first segments are rejected with what they copy, and one replay was enough.
    assert panes[key].accounting.duplicate == AFTER + BEFORE * REPORTS
    figures = Status.of(out).figures
    assert figures.rejected == {reason: BEFORE * (REPORTS + 1)}
    assert figures.accounting.closes()
    assert figures.accounting.received == (BEFORE + AFTER) * (REPORTS + 2) + sum(sent)
    assert position is not None
    assert position.spec_refused == 1
