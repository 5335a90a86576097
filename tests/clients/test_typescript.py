"""The client in TypeScript: how its README compiles, bundles and runs in a browser, and stores that many share."""

import json
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients import FOLDER
from tests.browser.chromium import PROGRAM
from tests.clients.fleets import uldp
from tests.pipelines.intake.posting import Collecting

CLIENT = FOLDER / "typescript"
SPEC = FOLDER / "places.yaml"
REPORTS, KILLS = 1000, 40
needs_chromium = pytest.mark.skipif(PROGRAM is None, reason="needs Chromium")
#: What a reader's project sets, by the name of how it finds modules.
RESOLUTIONS = {
    "bundler": {"module": "ESNext", "moduleResolution": "bundler"},
    "nodenext": {"module": "NodeNext", "moduleResolution": "NodeNext"},
    "node10": {"module": "ESNext", "moduleResolution": "node10"},
}


def programs() -> list[str]:
    """Return the programs of the README: of Node, and of a page."""
    return re.findall(
        r"^```js\n(.+?)^```$", (CLIENT / "README.md").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def node(program: str, *arguments: object) -> str:
    command = ["node", str(CLIENT / "test" / program), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def project(folder: Path, table: str) -> Path:
    """Make a project with the client and a table, as ``npm install`` does."""
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "uldp-client").symlink_to(CLIENT)
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    (folder / "places.json").write_text(table)
    return folder


@pytest.fixture(scope="module")
def table() -> str:
    return uldp("device-table", SPEC, "--json")


@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_the_programs_of_the_readme_compile(resolution: str, table: str, tmp_path: Path) -> None:
    options = {"strict": True, "noEmit": True, "target": "ES2022", "resolveJsonModule": True, "esModuleInterop": True}
    project(tmp_path, table)
    names = ["device.ts", "page.ts"]
    for name, program in zip(names, programs(), strict=True):
        (tmp_path / name).write_text(program)
    config: dict[str, Any] = {"compilerOptions": options | RESOLUTIONS[resolution] | {"types": []}, "files": names}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    compiler = CLIENT / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([compiler, "--project", tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    # A table of another program is an error when it is compiled.
    (tmp_path / "places.json").write_text('{"name": "places"}')
    done = subprocess.run([compiler, "--project", tmp_path], capture_output=True, text=True)
    assert "TS2345" in done.stdout


def test_a_program_of_common_js_compiles_and_runs(table: str, tmp_path: Path) -> None:
    (project(tmp_path, table) / "package.json").write_text('{"private": true}')
    (tmp_path / "device.cts").write_text(
        'import { FileStore } from "uldp-client/node";\nimport { Device } from "uldp-client";\n'
        'import places = require("./places.json");\n'
        'const device = new Device(places, { ledger: new FileStore("store") });\n'
        'device.report("flat").then(({ length }) => console.log(length));\n'
    )
    options = {"strict": True, "resolveJsonModule": True, "target": "ES2022", "lib": ["ES2022", "DOM"], "types": []}
    config = {"compilerOptions": options | RESOLUTIONS["nodenext"], "files": ["device.cts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [CLIENT / "node_modules" / ".bin" / "tsc", "--project", tmp_path], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "")
    done = subprocess.run(["node", "device.cjs"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.strip().isdigit(), done.stderr


@needs_chromium
@pytest.mark.parametrize("bundler", ["esbuild", "vite"])
def test_the_page_of_the_readme_reports_from_a_browser(bundler: str, table: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = project(tmp_path, table)
    with Collecting(SPEC, tmp_path / "reports", "--origin", f"http://127.0.0.1:{port}") as collecting:
        (folder / "page.js").write_text(programs()[1].replace("8070", str(collecting.port)))
        heard = json.loads(node("bundled.mjs", folder, port, bundler).splitlines()[-1])
    assert re.fullmatch("[0-9a-f]{32}", heard[0])
    assert heard[1] == {"kind": "taken"}
    counted = uldp("backfill", "--spec", SPEC, "--from", tmp_path / "reports", "--to", tmp_path / "results")
    assert "1 received = 1 counted + 0 duplicate + 0 late + 0 rejected" in counted


@pytest.mark.parametrize("kind", ["processes", pytest.param("tabs", marks=needs_chromium)])
def test_what_is_killed_spends_a_budget_once_and_loses_nothing_that_was_added(kind: str) -> None:
    found = json.loads(node("shared.mjs", kind, REPORTS, KILLS, 7))
    assert found["spent"] == pytest.approx(REPORTS)
    assert (found["lost"], found["kills"]) == (0, KILLS)
    # What is killed may have spent what it has not added yet.
    assert REPORTS - KILLS <= found["added"] <= found["counted"] <= REPORTS
