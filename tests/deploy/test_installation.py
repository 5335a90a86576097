"""The units of a small installation, started as systemd would in folders of a test: a report goes from post to page."""

import json
import re
import shlex
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import build
from tests.cluster.daemons import Daemon
from tests.deploy.test_systemd import SYSTEMD, environment, parsed
from tests.pipelines.command import ULDP
from tests.pipelines.intake.posting import post

pytestmark = pytest.mark.slow
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


def started(name: str, root: Path) -> Daemon:
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


def test_a_report_is_taken_counted_and_shown(root: Path) -> None:
    with ExitStack() as stack:
        collect = stack.enter_context(started("collect", root))
        to = int(said(collect, r"post reports to http://127\.0\.0\.1:(\d+)/v1/reports;"))
        stream = stack.enter_context(started("stream", root))
        now = time.time_ns() // 1_000_000
        bodies = [build.report(number, number % 5, now).encode() for number in range(REPORTS)]
        assert {post(to, body)[0] for body in bodies + bodies[:TWICE]} == {202}
        assert post(to, b"no report")[0] == 422
        assert said(stream, r"following \S+ into (\S+):") == f"{root}/var/lib/uldp-stream/results"
        serve = stack.enter_context(started("serve", root))
        page = int(said(serve, r"serving at http://127\.0\.0\.1:(\d+)/;"))

        def counted() -> Any:
            with urllib.request.urlopen(f"http://127.0.0.1:{page}/api/results/windows", timeout=10) as answer:
                windows = json.load(answer)["windows"]
            total = {name: sum(each[name] for each in windows) for name in ("received", "counted", "duplicate")}
            return total if total["received"] == REPORTS + TWICE else None

        shown = stream.wait_until(counted, "all is shown", SECONDS)
    assert shown == {"received": REPORTS + TWICE, "counted": REPORTS, "duplicate": TWICE}


def test_what_is_started_too_early_fails_in_one_line_and_is_started_again(root: Path) -> None:
    for name in ("stream", "serve"):
        assert parsed(SYSTEMD / f"uldp-{name}.service")["Service"]["Restart"] == "always"
        done = subprocess.run(command(name, root), capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode not in (0, STOPPED)
        assert len(done.stderr.splitlines()) == 1
