"""A program that reads the output of a command and closes it: the exit code is 141, and nobody sees a traceback."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.build import START
from tests.pipelines.command import SPEC, ULDP, Run
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
    command = [
        str(ULDP.with_name("python")),
        "-c",
        program,
        "stream",
        "--spec",
        SPEC,
        "--from",
        "stream",
        "--to",
        "out",
    ]
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
