"""What a command does to its process and its output, also if somebody closes it: exit code 141, and no traceback."""

import io
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.build import START
from tests.pipelines.command import SPEC, ULDP, Run
from uldp.pipelines import cli
from uldp.pipelines.commands.output import show_log
from uldp.pipelines.process import silence_workers, watched_output
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

BACKFILL = ["backfill", "--spec", SPEC, "--from", "stream", "--to"]


def run_closed(arguments: list[str], closed: str, unbuffered: str, cwd: Path) -> tuple[int, str]:
    """Run a command whose standard output, standard error or both nobody reads any more; what it says on the other."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {name: writer if name in closed else subprocess.PIPE for name in ("stdout", "stderr")}
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([ULDP, *arguments], cwd=cwd, env=environment, text=True, **streams) as process:  # type: ignore[call-overload]
        os.close(writer)
        out, err = process.communicate(timeout=120)
    return process.returncode, (out or "") + (err or "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("closed")
    stream = LocalStream.create(path / "stream")
    stream.append([Message(b"no report", START)])
    stream.close()
    return path


@pytest.mark.parametrize(
    ("arguments", "closed", "unbuffered"),
    [
        (["check", SPEC], "stdout", ""),
        (["--help"], "stdout", "1"),
        (["--version"], "stdout, stderr", ""),
        (["frobnicate"], "stderr", ""),
        (["check", "nowhere.yaml"], "stdout, stderr", "1"),
        pytest.param([*BACKFILL, "batch"], "stdout", "1", marks=pytest.mark.slow),
        pytest.param(
            ["stream", "--spec", SPEC, "--from", "stream", "--to", "silent"],
            "stdout, stderr",
            "",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_command_whose_output_is_closed_ends_as_one_that_the_signal_ends(
    arguments: list[str], closed: str, unbuffered: str, folder: Path
) -> None:
    assert run_closed(arguments, closed, unbuffered, folder) == (141, "")


@pytest.mark.slow
def test_the_readers_of_results_end_likewise(folder: Path, uldp: Run) -> None:
    out = str(folder / "out")
    assert uldp("backfill", "--spec", SPEC, "--from", folder / "stream", "--to", out)[0] == 0
    for arguments in (["show", out], ["replay", f"{out}/rejected", "--to", "again"]):
        assert run_closed(arguments, "stdout, stderr", "1", folder) == (141, "")


@pytest.mark.slow
def test_a_job_that_waits_for_segments_ends_when_its_output_closes(tmp_path: Path) -> None:
    """It prints from a thread of its own, in which no error could end it."""
    LocalStream.create(tmp_path / "stream")
    program = (
        "from uldp.pipelines.jobs.progress import Heartbeat; Heartbeat.EVERY = 0.2;"
        "from uldp.pipelines.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "stream", "--spec", SPEC, "--from", "stream", "--to", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("following stream into out")
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        said = process.stderr.read()
    assert "Traceback" not in said
    assert "error: " not in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_what_cannot_be_printed_is_an_error() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([ULDP, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    said = "error: standard output: No space left on device; free some space there, and run the same command again\n"
    assert (ended.returncode, ended.stderr) == (1, said)


@pytest.fixture
def logs() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)
    logging.getLogger("PrismJobServer").disabled = False
    for each in [*logging.getLogger().filters]:
        logging.getLogger().removeFilter(each)


def test_a_character_that_a_stream_has_not_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a file to which Windows redirects what is printed."""
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding="cp1252", newline="\n"))
    with watched_output() as output:
        click.echo("caf\xe9 \u03b6")
        output.check()
    assert file.getvalue() == b"caf\xe9 \\u03b6\n"


@pytest.mark.usefixtures("logs")
def test_a_failure_of_a_job_is_said_once(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers, and the layers of Prism's runner, tell of it too; a worker does so until the process ends."""

    def fail(**_: object) -> None:
        silence_workers()
        logging.getLogger().error("bundle failed: Traceback")
        logging.getLogger("PrismJobServer").error("bundle failed: Traceback")
        logging.getLogger("uldp.transforms").error("kafka:b:1/t: no broker answers")
        raise RuntimeError("job failed: Traceback\n  ...\nuldp.schemas.errors.EndpointError: kafka:b:1/t: is gone")

    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(cli.cli, "main", fail)
    with pytest.raises(SystemExit):
        cli.main()
    worker = threading.Thread(target=lambda: sys.stderr.write("Traceback"))
    worker.start()
    worker.join()
    assert caplog.messages == ["kafka:b:1/t: no broker answers"]
    assert capsys.readouterr().err == "error: kafka:b:1/t: is gone\n"


def test_what_is_worth_a_line_of_a_log_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_log("uldp.shown", logging.WARNING)
    logging.getLogger("uldp.shown.module").warning("%s lost %d messages", "topic", 3)
    logging.getLogger("uldp.shown.module").debug("asked")
    logging.getLogger("uldp.hidden").debug("nothing")
    assert capsys.readouterr().err == "topic lost 3 messages\n"
