"""The attribute uldp-attempt, which any publisher may write: it decides about the messages that carry it alone."""

from pathlib import Path

import pytest

from tests import build
from uldp.pipelines.jobs.local import backfill, pipeline_options
from uldp.pipelines.results.records import read_rejected_folder
from uldp.pipelines.results.replay import Replayed, replay
from uldp.schemas.records import ATTEMPT, Message
from uldp.transforms.io.local.stream import LocalStream

#: No job of this test knows the version, so a replay is the remedy.
HONEST = build.message(build.report(1, 1, key=("c", 2)))


def replayed(*messages: Message, out: Path) -> Replayed:
    stream = LocalStream.create(out / "stream", simulated_clock=True)
    stream.append(messages)
    backfill([build.spec()], stream.path, out / "results", pipeline_options([]))
    return replay(read_rejected_folder(out / "results" / "rejected"), LocalStream.create(out / "to"), max_attempts=5)


@pytest.mark.parametrize("written", ["5", "9999"])
def test_a_forged_copy_is_not_sent_again_and_the_report_is(written: str, tmp_path: Path) -> None:
    forged = HONEST._replace(attributes={ATTEMPT: written})
    assert replayed(forged, HONEST, out=tmp_path) == Replayed(sent=1, exhausted=1, cut=0)


@pytest.mark.slow
@pytest.mark.parametrize("written", ["0", "-1", "10000", "five", ""])
def test_what_replay_did_not_write_is_the_first_attempt(written: str, tmp_path: Path) -> None:
    assert replayed(HONEST._replace(attributes={ATTEMPT: written}), out=tmp_path) == Replayed(1, 0, 0)
