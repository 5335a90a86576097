"""What a backfill leaves out of an archive is in its results, and one run names all that is damaged in it."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from tests import build
from tests.build import MINIMAL
from tests.pipelines.command import Run
from uldp.schemas.framing import load_schema
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
    "empty": lambda _: b"",
    "no container": lambda _: b"no Avro",
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
