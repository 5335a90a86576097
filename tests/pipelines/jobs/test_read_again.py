"""A live stream that is read again from its beginning, under another estimator: no record is written a second time."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from tests.build import MINUTE, START, message, report, spec
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.replay import replay
from uldp.schemas.records import Message
from uldp.schemas.rejected import count_reasons
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local import events
from uldp.transforms.io.local.resume_point import RESUME
from uldp.transforms.io.local.segments import SegmentHeader, read_header
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

SEGMENTS, OF_EACH = 12, 40
SPEC = spec(window={"size": "10m"}, limits={"max_clock_skew": "1h", "max_age": "3d"})
OTHER = spec(window={"size": "10m"}, limits={"max_clock_skew": "1h", "max_age": "3d"}, estimator="empirical")


def segment(number: int) -> list[Message]:
    """Reports that are counted, late, twice, of nobody or cut off, of which many have equal data."""
    rng = np.random.default_rng(number)
    found = []
    for index in range(OF_EACH):
        published = START + number * 5 * MINUTE + index
        kind, delay = rng.integers(6), int(rng.choice([0, MINUTE, 90 * MINUTE]))
        body = report(OF_EACH * number + index // 2, int(rng.integers(5)), published - delay)
        found.append(message(body, published))
        if kind < 3:
            data = [b"", b"\xc3\x01", body.encode()[: 20 + index]][kind]
            found.append(Message(data, published, {"of": "somebody"} if index % 2 else {}))
    return found


def follow(stream: LocalStream, out: Path, of: CollectionSpec) -> None:
    jobs.follow([of], stream.path, out, jobs.pipeline_options([]))


def follow_live(stream: LocalStream, out: Path, segments: Sequence[list[Message]]) -> None:
    """Follow a stream that gets its next segment, or its end, when the job has read the last one."""
    waiting = iter(segments)

    def header(path: Path) -> SegmentHeader:
        found = read_header(path)
        if path == stream.segments()[-1] and not stream.closed:
            more = next(waiting, None)
            stream.close() if more is None else stream.append(more)
        return found

    stream.append(next(waiting))
    with mock.patch.object(events, "read_header", header):
        follow(stream, out, SPEC)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalStream, Path]:
    folder = tmp_path_factory.mktemp("live")
    stream = LocalStream.create(folder / "stream", simulated_clock=True)
    follow_live(stream, folder / "out", [segment(number) for number in range(SEGMENTS)])
    return stream, folder / "out"


def files(out: Path) -> dict[str, bytes]:
    return {
        f"{kind}/{path.name}": path.read_bytes() for kind in ("late", "rejected") for path in (out / kind).iterdir()
    }


def replayed(out: Path) -> Counter[bytes]:
    stream = LocalStream.create(out.parent / f"again{len([*out.parent.iterdir()])}", simulated_clock=True)
    sent = replay(ResultsFolder(out).rejected(), stream, max_attempts=5).sent
    found = Counter(each.data for path in stream.segments() for each in read_messages(path))
    assert found.total() == sent
    return found


def test_the_files_the_totals_the_reasons_and_what_is_sent_again_are_the_same(live: tuple[LocalStream, Path]) -> None:
    stream, out = live
    before = files(out), count_reasons(ResultsFolder(out).rejected()), replayed(out)
    totals = {pane.key: pane.accounting for pane in newest(ResultsFolder(out, private=out).statistics())}
    late = sum(each.late for each in totals.values())
    assert late > 50
    assert before[1].total() > 100
    (out / RESUME).unlink()
    follow(stream, out, OTHER)
    assert (files(out), count_reasons(ResultsFolder(out).rejected()), replayed(out)) == before
    assert {pane.key: pane.accounting for pane in newest(ResultsFolder(out, private=out).statistics())} == totals
