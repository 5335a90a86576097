"""The units of a small installation: each starts a command that there is, as a user without rights."""

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from uldp.pipelines.cli import cli

SYSTEMD = Path(__file__).parents[2] / "deploy" / "systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))


def parsed(unit: Path) -> ConfigParser:
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(unit.read_text(encoding="utf-8"))
    return parser


def environment() -> dict[str, str]:
    lines = (SYSTEMD / "environment").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def started(unit: Path) -> click.Context:
    """Parse the command of a unit as the command line would; nothing runs."""
    text = parsed(unit)["Service"]["ExecStart"]
    # systemd splits the value of a variable that is a word of its own at spaces.
    program, name, *arguments = shlex.split(re.sub(r"\$(\w+)", lambda found: environment()[found[1]], text))
    assert program == "/opt/uldp-stream/bin/uldp"
    return cli.commands[name].make_context(name, arguments)


def test_there_are_three() -> None:
    assert [unit.stem for unit in UNITS] == ["uldp-collect", "uldp-serve", "uldp-stream"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_starts_its_command(unit: Path) -> None:
    context = started(unit)
    assert f"uldp-{context.info_name}" == unit.stem
    assert context.args == []  # else they would go to Beam


def test_what_one_writes_the_next_reads() -> None:
    collect, serve, stream = (started(unit).params for unit in UNITS)
    assert collect["to"] == stream["source"] == "/var/lib/uldp-stream/posted"
    assert serve["out"] == (Path(stream["out"]),)
    assert collect["specs_in"] == stream["specs_in"] == "/etc/uldp-stream/specs"
    assert collect["host"] == serve["host"] == "127.0.0.1"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_a_unit_runs_without_rights_and_comes_back(unit: Path) -> None:
    service = parsed(unit)["Service"]
    assert service["User"] == "uldp"
    assert service["Restart"] == "always"
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["CapabilityBoundingSet"]) == (
        "yes",
        "strict",
        "",
    )


def test_who_shows_results_may_not_write_them_or_read_reports() -> None:
    serve, stream = parsed(SYSTEMD / "uldp-serve.service")["Service"], started(SYSTEMD / "uldp-stream.service").params
    assert "StateDirectory" not in serve
    hidden = [path.removeprefix("-") for path in serve["InaccessiblePaths"].split()]
    assert {stream["private_to"], stream["source"]} == set(hidden)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_knows_every_line(unit: Path, tmp_path: Path) -> None:
    """Of a copy with a program that is there, systemd has nothing to say."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text(encoding="utf-8").replace("/opt/uldp-stream/bin/uldp", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", copy], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
