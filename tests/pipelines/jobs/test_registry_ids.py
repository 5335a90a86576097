"""A job counts messages in the framing of a schema registry if a file says what its ids mean."""

import json
import re
import shutil
from pathlib import Path

import pytest

from tests import build
from tests.build import MINIMAL, MINUTE, START
from tests.pipelines.command import Run
from uldp.schemas.framing import HEADER_SIZE, header, load_schema
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

REPORTS = [build.report(number, number % 5, START + number * MINUTE) for number in range(40)]
#: Singles, a batch of the next hour, a copy, a late one, and one that no mechanism makes.
SENT = [
    *((report.encode(), report.event_time) for report in REPORTS),
    (build.batch([build.report(100 + n, 1, START + 60 * MINUTE) for n in range(5)]).encode(), START + 60 * MINUTE),
    (REPORTS[0].encode(), START + 61 * MINUTE),
    (build.report(200, 2, START).encode(), START + 180 * MINUTE),
    (build.report(201, 77, START + 180 * MINUTE).encode(), START + 181 * MINUTE),
]
HEADERS = {header(load_schema("report")): 7, header(load_schema("report_batch")): 4_000_000_000}
IDS = "id,schema\n7,report\n4000000000,report_batch\n"
OPTION = ("--registry-ids", "ids.csv")


def framed(data: bytes) -> bytes:
    return b"\0" + HEADERS[data[:HEADER_SIZE]].to_bytes(4, "big") + data[HEADER_SIZE:]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same messages twice: with our header, and in the framing of a registry."""
    monkeypatch.chdir(tmp_path)
    Path("spec.yaml").write_text(json.dumps(MINIMAL | {"limits": {"min_reports": 1}}), encoding="utf-8")
    Path("ids.csv").write_text(IDS, encoding="utf-8")
    for name in ("ours", "theirs"):
        stream = LocalStream.create(Path(name), simulated_clock=True)
        for at in range(0, len(SENT), 10):
            stream.append([Message(framed(d) if name == "theirs" else d, time) for d, time in SENT[at : at + 10]])
        stream.close()


def total(out: str) -> str:
    return next(line for line in out.splitlines() if line.startswith("in all: "))


@pytest.mark.parametrize("command", ["backfill", "stream"])
def test_a_job_counts_both_framings_alike(command: str, uldp: Run) -> None:
    code, ours, _ = uldp(command, "--spec", "spec.yaml", "--from", "ours", "--to", "from-ours")
    assert code == 0
    code, theirs, err = uldp(command, "--spec", "spec.yaml", "--from", "theirs", *OPTION, "--to", "from-theirs")
    assert (code, err, total(theirs)) == (0, "", total(ours))
    assert "registry_framing" not in theirs
    assert uldp("export", "from-theirs")[1] == uldp("export", "from-ours")[1]
    assert "all accounted" in uldp("audit", "theirs", "from-theirs")[1]
    code, _, err = uldp(command, "--spec", "spec.yaml", "--from", "theirs", "--to", "from-theirs")
    assert (code, "holds the results of a job with other ids of a schema registry" in err) == (1, True)


def test_what_was_rejected_or_late_is_sent_again_without_ids(uldp: Run) -> None:
    uldp("stream", "--spec", "spec.yaml", "--from", "theirs", *OPTION, "--to", "out")
    LocalStream.create(Path("again"), simulated_clock=True)
    code, out, err = uldp("replay", "out/rejected", "--to", "again")
    assert (code, err) == (0, "")
    (Path("again") / "closed").touch()
    code, out, err = uldp("backfill", "--spec", "spec.yaml", "--from", "again", "--to", "replayed")
    assert (code, err) == (0, "")
    assert "registry_framing" not in out


def said(outcome: tuple[int, str, str]) -> tuple[int, str, str]:
    """The outcome of a command without the number of bytes of a message, which depends on its framing."""
    code, out, err = outcome
    return code, re.sub(r"message of \d+ bytes", "message", out), err


@pytest.mark.parametrize("arguments", [("decode", "--first", "0"), ("verify", "--value=1")], ids=lambda each: each[0])
def test_developers_of_clients_name_ids_too(arguments: tuple[str, ...], uldp: Run) -> None:
    command, *options = arguments
    Path("ours").rename("sent")
    ours = said(uldp(command, "sent", "--spec", "spec.yaml", *options))
    shutil.rmtree("sent")
    Path("theirs").rename("sent")
    assert said(uldp(command, "sent", "--spec", "spec.yaml", *options, *OPTION)) == ours
    assert said(uldp(command, "sent", "--spec", "spec.yaml", *options)) != ours


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: '' must be the header id,schema"),
        ("id,schema\n", "the file names no ids; write one a line, as 7,report"),
        ("id,schema\n7\n", "line 2: '7': the row has 1 fields; write id,schema"),
        ("id,schema\n-7,report\n", "line 2: '-7,report': id '-7' must be a whole number, as the registry shows it"),
        ("id,schema\n4294967296,report\n", "must be a whole number from 0 to 4294967295"),
        ("id,schema\n7,report\n\n7,report_batch\n", "line 4: '7,report_batch': id 7 occurs twice; remove one row"),
        ("id,schema\n7,Report\n", "schema 'Report' must be report or report_batch; remove the ids of other schemas"),
    ],
)
def test_a_file_that_says_no_ids_is_one_clear_line(text: str, words: str, uldp: Run) -> None:
    Path("ids.csv").write_text(text, encoding="utf-8")
    code, out, err = uldp("stream", "--spec", "spec.yaml", "--from", "theirs", *OPTION, "--to", "out")
    assert (code, out, err.count("\n"), Path("out").exists()) == (1, "", 1, False)
    assert err.startswith("error: ids.csv: ")
    assert words in err
