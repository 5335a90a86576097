"""A sample of the messages that were refused."""

from pathlib import Path
from stat import S_IMODE

import pytest

from tests import build
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.intake.test_collect import now, write_spec
from uldp.pipelines.intake import refused as module
from uldp.pipelines.intake.judging import Refusal
from uldp.pipelines.intake.refused import RefusedSample
from uldp.pipelines.results.records import records_of
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected

BAD = Refusal(Reason.NOT_AVRO, "no header")


def kept(folder: Path) -> list[Rejected]:
    def fail(damage: Exception) -> None:
        raise damage

    return [*records_of(sorted(folder.glob("*.avro")), "rejected", Rejected.from_avro, fail)]


def test_the_command_keeps_what_it_refuses_and_nothing_else(tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    folder = tmp_path / "refused"
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted", "--refused", str(folder)) as collecting:
        answers = [post(collecting.port, body)[0] for body in (build.report(1, 3, now()).encode(), b'{"value": 3}')]
    assert answers == [202, 422]
    (record,) = kept(folder)
    assert (record.reason, record.bodies, record.stage) == ("not_avro", (b'{"value": 3}',), "intake")
    assert S_IMODE(folder.stat().st_mode) == 0o700
    assert {S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_so_many_of_each_reason_are_kept_in_an_hour(tmp_path: Path) -> None:
    sample = RefusedSample(tmp_path / "refused")
    other = Refusal(Reason.TRUNCATED, "ends")
    for number in range(30):
        message = Message(b"%d" % number, build.START)
        sample.keep([(message, BAD)] * 5 + [(message, other)])
    assert sorted(record.reason for record in kept(tmp_path / "refused")) == ["not_avro"] * 100 + ["truncated"] * 30


def test_the_oldest_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 5_000)
    sample = RefusedSample(tmp_path / "refused")
    for number in range(20):
        sample.keep([(Message(build.report(number, 3).encode(), build.START + number), BAD)])
    times = [record.publish_time - build.START for record in kept(tmp_path / "refused")]
    assert times == [*range(20 - len(times), 20)]
    assert 0 < len(times) < 20
