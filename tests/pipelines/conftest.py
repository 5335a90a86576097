"""The command in this process, and a stream that it has simulated."""

import sys
from pathlib import Path

import pytest

from tests.pipelines.command import SPEC, TRUTH, Run
from uldp.pipelines.cli import main


@pytest.fixture
def uldp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; returns exit code, output and errors."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["uldp", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="session")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of 6,000 reports of three hours, with one in ten a copy, late or damaged."""
    folder = tmp_path_factory.mktemp("simulated")
    arguments = ["--truth", TRUTH, "--users", "6000", "--to", str(folder / "stream"), "--seed", "7"]
    trouble = ["--duplicates", "0.04", "--late", "0.03", "--malformed", "0.03"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "simulate", SPEC, *arguments, *trouble])
        main()
    return folder / "stream"


@pytest.fixture(scope="session")
def backfilled(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of this stream; tests only read them."""
    out = tmp_path_factory.mktemp("backfilled") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "backfill", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
        main()
    return out
