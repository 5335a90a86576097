"""The command, and the example that its tests run."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

MANHATTAN = Path(__file__).parents[2] / "examples" / "manhattan"
SPEC, TRUTH = str(MANHATTAN / "spec.yaml"), str(MANHATTAN / "truth.csv")

ULDP = Path(sys.executable).with_name("uldp")

Run = Callable[..., tuple[int, str, str]]


def counted(folder: Path, keys: Mapping[str, Any], truth: str, users: int, *options: str) -> Path:
    """Simulate users by a spec and a truth, which stay in the folder, and return the results of a backfill."""
    spec, rows, stream, out = (folder / name for name in ("spec.yaml", "truth.csv", "stream", "results"))
    spec.write_text(yaml.safe_dump(dict(keys), sort_keys=False), encoding="utf-8")
    rows.write_text(truth, encoding="utf-8")
    run("simulate", spec, "--truth", rows, "--users", users, "--to", stream, *options)
    run("backfill", "--spec", spec, "--from", stream, "--to", out)
    return out


def run(*arguments: str | int | Path) -> None:
    """Run a command that has to succeed, and drop what it prints."""
    from uldp.pipelines.cli import cli

    done = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def with_room(nbytes: int, *arguments: str | Path) -> list[str]:
    """The command, of which a write beyond so many bytes of a file fails, as on a full disk."""
    limit = f"resource.setrlimit(resource.RLIMIT_FSIZE, ({nbytes}, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))"
    return _after(f"import resource; {limit}", *arguments)


def heeding_interrupts(*arguments: str | Path) -> list[str]:
    """The command, which SIGINT stops although whoever runs the tests in the background ignores it."""
    return _after("import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)", *arguments)


def _after(change: str, *arguments: str | Path) -> list[str]:
    """The command in a process that changes itself first. A fork of a process with threads of gRPC may abort."""
    code = f"{change}; import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code, str(ULDP), *map(str, arguments)]
