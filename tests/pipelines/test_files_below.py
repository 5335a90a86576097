"""The files that a spec names, at the command line."""

import os
from pathlib import Path

import pytest

from tests.pipelines.command import Run

SPEC = """\
collection: where
version: 1
domain: {{labels_file: {name}}}
mechanism: {{name: rr, epsilon: 2.0}}
window: {{size: 1h}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "labels.csv").write_text("value\nhome\nwork\n", encoding="utf-8")
    path = tmp_path / "own" / "spec.yaml"
    path.write_text(SPEC.format(name="../labels.csv"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["advise", "--epsilon", "2", "--users", "1000"],
        ["simulate", "--truth", "no.csv", "--users", "1", "--to", "stream"],
        ["backfill", "--from", "stream", "--to", "results", "--spec"],
        ["stream", "--from", "stream", "--to", "results", "--spec"],
        ["decode", "message", "--spec"],
        ["verify", "vectors", "--value", "home", "--spec"],
        ["zones", "--tag", "home", "--to", "home.csv"],
    ],
    ids=lambda command: command[0],
)
def test_a_file_elsewhere_is_refused_until_its_folder_is_allowed(uldp: Run, spec: Path, command: list[str]) -> None:
    name, *rest = command
    arguments = [name, *rest, str(spec)]
    code, _, err = uldp(*arguments)
    assert code == 1
    assert err == (
        f"error: {spec}: domain.labels_file: {spec.parent}/../labels.csv: the file is not below {spec.parent}; move it"
        " there, or allow another folder with uldp --files-below FOLDER\n"
    )
    _, _, err = uldp("--files-below", str(spec.parents[1]), *arguments)
    assert "labels_file" not in err


def test_a_pipe_is_refused_and_not_waited_for(uldp: Run, spec: Path) -> None:
    os.mkfifo(spec.parent / "pipe.csv")
    spec.write_text(SPEC.format(name="pipe.csv"), encoding="utf-8")
    code, _, err = uldp("check", str(spec))
    assert (code, err.count("\n")) == (1, 1)
    assert "pipe.csv: a pipe, a socket or a device is no regular file; copy what it holds to a file" in err
