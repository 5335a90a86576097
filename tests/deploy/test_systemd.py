"""The units of a small installation: what each may do; and a report goes from post to page by what they start."""

import json
import re
import shlex
import shutil
import subprocess
import time
import urllib.request
from configparser import ConfigParser
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from tests import build
from tests.cluster.daemons import Daemon
from tests.pipelines.command import ULDP
from tests.pipelines.intake.posting import post
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


REPORTS, TWICE = 20, 3
#: A command takes a few seconds to import all it needs, and minutes on a machine that does much else.
SECONDS = 180.0
#: What a unit's program ends with when it is stopped, by the unit itself or else by systemd.
STOPPED = int(parsed(SYSTEMD / "uldp-stream.service")["Service"]["SuccessExitStatus"])
#: Ports of the machine, as the commands have them unless told otherwise.
ANY_PORT = {"collect": ["--port", "0"], "serve": ["--port", "0"], "stream": []}


def command(name: str, root: Path) -> list[str]:
    """Return what a unit starts, with the folders of the machine below ``root``, at ports that are free."""
    line = parsed(SYSTEMD / f"uldp-{name}.service")["Service"]["ExecStart"]
    program, *arguments = shlex.split(re.sub(r"\$(\w+)", lambda found: environment()[found[1]], line))
    assert program == "/opt/uldp-stream/bin/uldp"
    moved = [f"{root}{each}" if each.startswith(("/etc/", "/var/")) else each for each in arguments]
    return [str(ULDP), *("0" if each == "9464" else each for each in moved), *ANY_PORT[name]]


def running(name: str, root: Path) -> Daemon:
    return Daemon(command(name, root), root / f"{name}.log")


def said(daemon: Daemon, pattern: str) -> str:
    """Wait for a line of a unit's log, and return what its group matches."""
    found = daemon.wait_until(lambda: re.search(pattern, daemon.log.read_text(encoding="utf-8")), pattern, SECONDS)
    return found[1]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """What docs/collecting.md makes of a machine before it enables the units."""
    (specs := tmp_path / "etc" / "uldp-stream" / "specs").mkdir(parents=True)
    (tmp_path / "var" / "lib" / "uldp-stream").mkdir(parents=True)
    window = {"size": "1h", "early_every": "1s"}
    spec = build.MINIMAL | {"window": window, "limits": {"min_reports": 1}}
    (specs / "survey.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_a_report_is_taken_counted_and_shown(root: Path) -> None:
    with ExitStack() as stack:
        collect = stack.enter_context(running("collect", root))
        to = int(said(collect, r"post reports to http://127\.0\.0\.1:(\d+)/v1/reports;"))
        stream = stack.enter_context(running("stream", root))
        now = time.time_ns() // 1_000_000
        bodies = [build.report(number, number % 5, now).encode() for number in range(REPORTS)]
        assert {post(to, body)[0] for body in bodies + bodies[:TWICE]} == {202}
        assert post(to, b"no report")[0] == 422
        assert said(stream, r"following \S+ into (\S+):") == f"{root}/var/lib/uldp-stream/results"
        serve = stack.enter_context(running("serve", root))
        page = int(said(serve, r"serving at http://127\.0\.0\.1:(\d+)/;"))

        def counted() -> Any:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/api/results/windows", timeout=10) as answer:
                windows = json.load(answer)["windows"]
            total = {name: sum(each[name] for each in windows) for name in ("received", "counted", "duplicate")}
            return total if total["received"] == REPORTS + TWICE else None

        shown = stream.wait_until(counted, "all is shown", SECONDS)
    assert shown == {"received": REPORTS + TWICE, "counted": REPORTS, "duplicate": TWICE}


@pytest.mark.slow
def test_what_is_started_too_early_fails_in_one_line_and_is_started_again(root: Path) -> None:
    for name in ("stream", "serve"):
        assert parsed(SYSTEMD / f"uldp-{name}.service")["Service"]["Restart"] == "always"
        done = subprocess.run(command(name, root), capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode not in (0, STOPPED)
        assert len(done.stderr.splitlines()) == 1
