"""A backfill counts what archivers of the field wrote, or says in one line why it does not."""

import json
import sys
from pathlib import Path

import pytest

from tests import build
from tests.archivers import ARCHIVERS
from tests.build import HOUR, MINIMAL, START
from tests.pipelines.command import Run
from uldp.schemas.extras import install
from uldp.schemas.records import Message

REPORTS = 200
BACKFILL = ("backfill", "--spec", "spec.yaml", "--from", "archive", "--to", "out")
PUBLISHED = ("--published-by", "2026-01-01T10:00:00Z")
UNDATED = [name for name, archiver in ARCHIVERS.items() if not archiver.dated]
#: Published at the end of their hour.
SENT = [
    Message(build.report(number, 0).encode(), START + HOUR, {"uldp-sender": f"s{number % 2}"})
    for number in range(REPORTS)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = MINIMAL | {"limits": {"min_reports": 1, "max_clock_skew": "0s", "max_reports_per_sender": REPORTS // 2 - 1}}
    Path("spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    Path("archive").mkdir()


def put(name: str, codec: str = "null") -> None:
    Path("archive/1.avro").write_bytes(ARCHIVERS[name].write(SENT, codec))


@pytest.mark.parametrize("name", ARCHIVERS)
def test_all_reports_of_an_archiver_count(name: str, uldp: Run) -> None:
    put(name)
    code, out, err = uldp(*BACKFILL, *(() if ARCHIVERS[name].dated else PUBLISHED))
    assert (code, err) == (0, "")
    assert f"in all: {REPORTS} received = {REPORTS} counted + 0 dup" in out
    assert ("busy_sender" in out) == ARCHIVERS[name].attributes


@pytest.mark.parametrize("name", UNDATED)
def test_messages_without_a_time_are_refused_unless_it_is_given(name: str, uldp: Run) -> None:
    put(name)
    said = "holds messages without a publish time; give uldp backfill --published-by, a time by which all of them were"
    assert uldp(*BACKFILL) == (1, "", f"error: archive/1.avro: {said} published\n")
    assert not Path("out").exists()
    uldp(*BACKFILL, *PUBLISHED)
    assert uldp("audit", "archive", "out", *PUBLISHED)[0] == 0
    code, _, err = uldp(*BACKFILL, "--published-by", "2026-01-01T11:00:00Z")
    assert code == 1
    assert "holds results of" in err
    code, out, _ = uldp("decode", "archive/1.avro", "--spec", "spec.yaml", "--first", "0")
    assert (code, f"in all: {REPORTS} reports: {REPORTS} " in out) == (0, True)


def test_a_topic_knows_its_times(uldp: Run) -> None:
    code, _, err = uldp("backfill", "--spec", "spec.yaml", "--from", "kafka:h:1/t", "--to", "out", *PUBLISHED)
    assert (code, err) == (1, "error: kafka:h:1/t: its messages have publish times; leave out --published-by\n")


def test_a_unit_that_is_unknown_is_refused(uldp: Run) -> None:
    put("a declared timestamp-micros")
    path = Path("archive/1.avro")
    path.write_bytes(path.read_bytes().replace(b"timestamp-micros", b"timestamp-minute"))
    code, _, err = uldp(*BACKFILL)
    assert (code, Path("out").exists()) == (1, False)
    assert err.startswith(
        "error: archive/1.avro: publish_time declares the unit 'timestamp-minute'; known are timestamp"
    )


def test_snappy_is_read_if_it_is_installed(uldp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cramjam")
    put("Pub/Sub to Cloud Storage", "snappy")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cramjam", None)
        remedy = f"needs cramjam; install it: {install('archives')}"
        assert uldp(*BACKFILL) == (1, "", f"error: archive/1.avro: is compressed with snappy; {remedy}\n")
    assert f"in all: {REPORTS} received = {REPORTS} counted" in uldp(*BACKFILL)[1]
