"""The README of each client leads from install to the first counted report, as its reader does it."""

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.clients import FOLDER
from tests.pipelines.command import ULDP
from tests.pipelines.intake.posting import Collecting

#: The device of each README hides a value, and its ledger keeps a budget.
SPEC = FOLDER / "places.yaml"
PROGRAMS = {"typescript": ("js", "device.mjs"), "c": ("c", "device.c"), "kotlin": ("kotlin", "Device.kt")}


def readme(client: str) -> str:
    return (FOLDER / client / "README.md").read_text(encoding="utf-8")


def block(text: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.+?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_reader_comes_from_install_to_the_first_counted_report(client: str, tmp_path: Path) -> None:
    text = readme(client)
    assert text[: text.index("The last command")].count("\n") <= 36
    (tmp_path / "clients").symlink_to(FOLDER)
    language, name = PROGRAMS[client]
    (collect,) = re.findall(r"^uldp collect --spec clients/places.yaml --to [\w-]+ &.*\n", text, re.MULTILINE)
    with Collecting(SPEC, tmp_path / collect.split()[5]) as collecting:
        program, shell = (block(text, each).replace("8070", str(collecting.port)) for each in (language, "sh"))
        shell = shell.replace(collect, "")  # it runs at another port
        # The clients are built before the tests.
        shell = shell.replace("(cd clients/typescript && npm ci && npm run build) && ", "")
        shell = shell.replace("mvn -f clients/kotlin install && ", "")
        (tmp_path / name).write_text(program)
        run = ["bash", "-euo", "pipefail", "-c", f"PATH={ULDP.parent}:$PATH\n{shell}"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 received = 1 counted + 0 duplicate + 0 late + 0 rejected" in done.stdout
    assert "few_reports" in done.stdout


def test_a_fleet_of_a_client_is_verified_as_its_page_shows(tmp_path: Path) -> None:
    page = (FOLDER.parent / "docs" / "client" / "testing.md").read_text(encoding="utf-8")
    shell = block(page[page.index("```\nuldp collect") :], "")
    (collect,) = re.findall(r"^uldp collect --spec clients/places.yaml --to fleet &\n", shell, re.MULTILINE)
    (tmp_path / "clients").symlink_to(FOLDER)
    with Collecting(SPEC, tmp_path / "fleet") as collecting:
        shell = shell.replace(collect, "").replace("8070", str(collecting.port))
        run = ["bash", "-eu", "-c", f"PATH={ULDP.parent}:$PATH\n{shell}"]  # head ends yes by a broken pipe
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("2000\nfleet: 2,000 reports\n")
