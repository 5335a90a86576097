"""The README of each client leads from install to the first counted report in 20 lines, as its reader does it."""

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.clients import FOLDER, commands
from tests.pipelines.command import ULDP
from tests.pipelines.intake.posting import Collecting

#: The device of each README hides a value, and its ledger keeps a budget.
SPEC = """\
collection: places
version: 1
domain: {labels: [park, shop, clinic, flat, office]}
sensitive: [clinic]
mechanism: {name: urr, epsilon: 1.0}
tags: [{name: home}]
window: {size: 1h}
budget: {epsilon: 4, every: 30d}
estimator: empirical
"""
PROGRAMS = {"typescript": ("js", "device.mjs"), "c": ("c", "device.c"), "kotlin": ("kotlin", "Device.kt")}


def block(text: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.+?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_reader_comes_from_install_to_the_first_counted_report(client: str, tmp_path: Path) -> None:
    text = (FOLDER / client / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 20
    (tmp_path / "places.yaml").write_text(SPEC)
    (tmp_path / "clients").symlink_to(FOLDER)
    language, name = PROGRAMS[client]
    with Collecting(tmp_path / "places.yaml", tmp_path / "arrived") as collecting:
        program, shell = (block(text, each).replace("8070", str(collecting.port)) for each in (language, "sh"))
        assert shell.count("uldp collect --spec places.yaml --to arrived &") == 1
        shell = shell.replace("uldp collect --spec places.yaml --to arrived &", "")  # it runs at another port
        # The clients are built before the tests.
        shell = shell.replace("(cd clients/typescript && npm ci && npm run build) && ", "")
        if client == "kotlin":  # maven has built the same program among the tests
            built = (FOLDER / "kotlin" / "src" / "test" / "kotlin" / "Device.kt").read_text(encoding="utf-8")
            assert block(text, language) in built.replace("public fun", "fun")  # which its build demands
            *_, path, _ = commands("vectors")["kotlin"]
            shell = shell.replace("mvn -f clients/kotlin install && ", "").replace("device.jar", path)
        (tmp_path / name).write_text(program)
        run = ["bash", "-euo", "pipefail", "-c", f"PATH={ULDP.parent}:$PATH\n{shell}"]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 received = 1 counted + 0 duplicate + 0 late + 0 rejected" in done.stdout
