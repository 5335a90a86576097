"""The wheel, in an environment that holds nothing else: schemas, examples, command and transform work."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

USE_AS_A_LIBRARY = """
import apache_beam as beam
from mechanisms.device import Device
from pipelines.demo import example
from schemas.collection import CollectionSpec
from schemas.records import Message
from transforms.aggregate import Aggregate

spec = CollectionSpec.load(example("manhattan") / "spec.yaml")
device = Device(spec, hidden={300: "home"})
time = 1_767_603_600_000
messages = [Message(device.report(300, time), time) for _ in range(200)] + [Message(b"junk", time)]

with beam.Pipeline("FnApiRunner") as pipeline:
    aggregated = pipeline | beam.Create(messages) | Aggregate([spec])
    aggregated.estimates | beam.Map(lambda estimate: print("n", estimate.support.n, "home", estimate.tags["home"].mass))
    aggregated.rejected | beam.Map(lambda rejected: print("rejected", rejected.reason))
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    pip = (folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, wheel, cwd=folder)
    return folder


def test_it_works_as_a_library(environment: Path) -> None:
    (environment / "use.py").write_text(USE_AS_A_LIBRARY, encoding="utf-8")
    printed = run(environment / "venv" / "bin" / "python", "use.py", cwd=environment).splitlines()
    assert "rejected not_avro" in printed
    (estimate,) = [line for line in printed if line.startswith("n 200 home ")]
    assert float(estimate.split()[-1]) > 0.9


def test_the_command_runs_on_the_examples(environment: Path) -> None:
    uldp = environment / "venv" / "bin" / "uldp"
    where = run(
        uldp.with_name("python"), "-c", "from pipelines.demo import example; print(example('census'))", cwd=environment
    )
    census = Path(where.strip())
    assert environment in census.parents
    assert "census-1990 version 1" in run(uldp, "check", census / "spec.yaml", cwd=environment)
    simulated = ("--truth", census / "truth.csv", "--users", "5000", "--to", "stream", "--duration", "20h")
    run(uldp, "simulate", census / "spec.yaml", *simulated, "--start", "2026-01-05", cwd=environment)
    run(uldp, "backfill", "--spec", census / "spec.yaml", "--from", "stream", "--to", "results", cwd=environment)
    assert "n 5,000" in run(uldp, "show", "results", cwd=environment)
    done = subprocess.run(
        [uldp, "report", "results", "--out", "r.html"], cwd=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: a report needs jinja2; install it: pip install 'uldp-stream[report]'"]
