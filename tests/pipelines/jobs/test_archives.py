"""Archives that a backfill counts: what it leaves out or refuses is named, and archivers of the field are read."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from tests import build
from tests.archivers import ARCHIVERS
from tests.build import HOUR, MINIMAL, START
from tests.pipelines.command import Run
from uldp.schemas.extras import install
from uldp.schemas.framing import load_schema
from uldp.schemas.records import Message
from uldp.transforms.io.message_files import StreamError
from uldp.transforms.io.read_archive import ReadArchive

FILES, REPORTS = 4, 20
BACKFILL = ("backfill", "--spec", "spec.yaml", "--from", "archive", "--to", "out")


def container(file: int, codec: str = "null") -> bytes:
    """Reports of one file, of which no other file has one."""
    ids = range(file * REPORTS, (file + 1) * REPORTS)
    messages = [build.message(build.report(number, 0)).to_avro() for number in ids]
    written = io.BytesIO()
    fastavro.writer(written, load_schema("message"), messages, codec=codec)
    return written.getvalue()


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    spec = MINIMAL | {"limits": {"min_reports": 1}}
    Path("spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    Path("archive").mkdir()
    for file in range(FILES):
        Path(f"archive/{file}.avro").write_bytes(container(file))
    return Path("archive")


def test_all_ways_to_a_file_are_read(archive: Path, uldp: Run) -> None:
    elsewhere = Path("elsewhere")
    elsewhere.mkdir()
    (archive / "day.avro").mkdir()
    (archive / "1.avro").rename(elsewhere / "1.avro")
    (archive / "linked").symlink_to("../elsewhere")
    (archive / "2.avro").rename(archive / "day.avro/part-2.avro")
    (archive / "3.avro").rename(archive / "3.AVRO")
    code, out, err = uldp(*BACKFILL)
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith(f"in all: {FILES * REPORTS} received = {FILES * REPORTS} counted")
    assert not Path("out/left_out.json").exists()


LINE = (
    "left out 3 files: 2 hidden by a name that begins with . or _ (as _SUCCESS),"
    " 1 with a name that does not end in .avro (as more.avro.gz)"
)


def test_what_is_left_out_is_said_and_kept_beside_the_results(archive: Path, uldp: Run) -> None:
    (archive / "_temporary").mkdir()
    for name in ("_temporary/1.avro", "_SUCCESS", "more.avro.gz"):
        (archive / name).write_bytes(container(9))
    code, out, err = uldp(*BACKFILL)
    assert (code, err) == (0, f"archive: {LINE}\n")
    received, said = out.splitlines()[-2:]
    assert received.startswith(f"in all: {FILES * REPORTS} received")
    assert said == f"the job {LINE}"
    assert uldp("show", "out")[1].splitlines()[-1] == said
    assert uldp("show", "out", "--json")[2].splitlines() == [said]
    assert uldp("export", "out", "--to", "rows.csv")[1].splitlines()[-1] == said
    code, out, _ = uldp("audit", "archive", "out")
    assert (code, out.splitlines()[0]) == (0, f"out: {said}")
    uldp("report", "out", "--out", "page.html")
    assert f"Not all files of the archive were read: {said}." in Path("page.html").read_text(encoding="utf-8")
    for path in ("_temporary/1.avro", "_SUCCESS", "more.avro.gz"):
        (archive / path).unlink()
    assert uldp(*BACKFILL)[1].splitlines()[-1].startswith("in all: ")


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-30],
    "cut behind a block": lambda content: content + b"\2",
    "another marker": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "rejected reports": lambda _: _of("rejected"),
}


def _of(schema: str) -> bytes:
    written = io.BytesIO()
    fastavro.writer(written, load_schema(schema), [])
    return written.getvalue()


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_damaged_files_are_named_before_a_pipeline_is_there(damage: str, archive: Path) -> None:
    for file in (1, 3):
        (archive / f"{file}.avro").write_bytes(DAMAGES[damage](container(file)))
    with pytest.raises(StreamError) as refused:
        ReadArchive(archive)
    assert [line.partition(": ")[0] for line in str(refused.value).splitlines()] == ["archive/1.avro", "archive/3.avro"]


def test_all_files_that_cannot_be_decoded_are_named(archive: Path, uldp: Run) -> None:
    whole = container(1, "deflate")
    for file in (1, 3):
        (archive / f"{file}.avro").write_bytes(whole[:-80] + bytes(40) + whole[-40:])
    ReadArchive(archive)  # the ends of blocks are as they should be
    code, _, err = uldp(*BACKFILL)
    assert code == 1
    assert [line.partition(": ")[2].partition(": ")[0] for line in err.splitlines()] == [
        "archive/1.avro",
        "archive/3.avro",
    ]
    assert not list(Path("out").rglob("*.avro"))


SENT_BY_EACH = 200
PUBLISHED = ("--published-by", "2026-01-01T10:00:00Z")
UNDATED = [name for name, archiver in ARCHIVERS.items() if not archiver.dated]
#: Published at the end of their hour.
SENT = [
    Message(build.report(number, 0).encode(), START + HOUR, {"uldp-sender": f"s{number % 2}"})
    for number in range(SENT_BY_EACH)
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = MINIMAL | {
        "limits": {"min_reports": 1, "max_clock_skew": "0s", "max_reports_per_sender": SENT_BY_EACH // 2 - 1}
    }
    Path("spec.yaml").write_text(json.dumps(spec), encoding="utf-8")
    Path("archive").mkdir()


def put(name: str, codec: str = "null") -> None:
    Path("archive/1.avro").write_bytes(ARCHIVERS[name].write(SENT, codec))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ARCHIVERS)
def test_all_reports_of_an_archiver_count(name: str, uldp: Run) -> None:
    put(name)
    code, out, err = uldp(*BACKFILL, *(() if ARCHIVERS[name].dated else PUBLISHED))
    assert (code, err) == (0, "")
    assert f"in all: {SENT_BY_EACH} received = {SENT_BY_EACH} counted + 0 dup" in out
    assert ("busy_sender" in out) == ARCHIVERS[name].attributes


@pytest.mark.usefixtures("folder")
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
    assert (code, f"in all: {SENT_BY_EACH} reports: {SENT_BY_EACH} " in out) == (0, True)


@pytest.mark.usefixtures("folder")
def test_a_topic_knows_its_times(uldp: Run) -> None:
    code, _, err = uldp("backfill", "--spec", "spec.yaml", "--from", "kafka:h:1/t", "--to", "out", *PUBLISHED)
    assert (code, err) == (1, "error: kafka:h:1/t: its messages have publish times; leave out --published-by\n")


@pytest.mark.usefixtures("folder")
def test_a_unit_that_is_unknown_is_refused(uldp: Run) -> None:
    put("a declared timestamp-micros")
    path = Path("archive/1.avro")
    path.write_bytes(path.read_bytes().replace(b"timestamp-micros", b"timestamp-minute"))
    code, _, err = uldp(*BACKFILL)
    assert (code, Path("out").exists()) == (1, False)
    assert err.startswith(
        "error: archive/1.avro: publish_time declares the unit 'timestamp-minute'; known are timestamp"
    )


@pytest.mark.usefixtures("folder")
def test_snappy_is_read_if_it_is_installed(uldp: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cramjam")
    put("Pub/Sub to Cloud Storage", "snappy")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "cramjam", None)
        remedy = f"needs cramjam; install it: {install('archives')}"
        assert uldp(*BACKFILL) == (1, "", f"error: archive/1.avro: is compressed with snappy; {remedy}\n")
    assert f"in all: {SENT_BY_EACH} received = {SENT_BY_EACH} counted" in uldp(*BACKFILL)[1]
