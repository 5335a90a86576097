"""The wheel, in an environment that holds nothing else: schemas, examples, command and transform work.

It is built from the source distribution, as an index would do it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SPEC = ROOT / "examples" / "manhattan" / "spec.yaml"

#: One worker builds the wheel, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]

USE_AS_A_LIBRARY = """
import apache_beam as beam
from uldp.mechanisms import Device
from uldp.mechanisms import MemoryLedger
from uldp.pipelines.demo import example
from uldp.schemas import CollectionSpec
from uldp.schemas import Message
from uldp.transforms import Aggregate

spec = CollectionSpec.load(example("manhattan") / "spec.yaml")
time = 1_767_603_600_000
devices = [Device(spec, hidden={300: "home"}, ledger=MemoryLedger()) for _ in range(200)]
messages = [Message(device.report(300, time), time) for device in devices] + [Message(b"junk", time)]

with beam.Pipeline("FnApiRunner") as pipeline:
    aggregated = pipeline | beam.Create(messages) | Aggregate([spec])
    aggregated.estimates | beam.Map(lambda estimate: print("n", estimate.n, "home", estimate.tables[1].values[0]))
    aggregated.rejected | beam.Map(lambda rejected: print("rejected", rejected.reason))
"""

USE_WITHOUT_BEAM = """
import sys
from importlib.util import find_spec

import uldp.mechanisms
from uldp.collector import Collector
from uldp.mechanisms import Device, MemoryLedger
from uldp.schemas import CollectionSpec

assert find_spec("apache_beam") is None
spec = CollectionSpec.load(sys.argv[1])
time = 1_767_603_600_000
collector = Collector([spec])
devices = [Device(spec, hidden={}, ledger=MemoryLedger()) for _ in range(200)]
rejected = collector.add([*(device.report(300, time) for device in devices), b"junk"])
print(*(each.reason for each in rejected), *(estimate.n for estimate in collector.estimates()))
"""
#: Commands that need Beam.
OF_JOBS = {
    "simulate": ("simulate", "{spec}", "--truth", "{truth}", "--users", "5", "--to", "new"),
    "backfill": ("backfill", "--spec", "{spec}", "--from", "stream", "--to", "new"),
    "stream": ("stream", "--spec", "{spec}", "--from", "stream", "--to", "new"),
    "audit": ("audit", "stream", "results"),
    "replay": ("replay", "rejected", "--to", "new"),
    "merge of a URL": ("merge", "gs://bucket/one", "gs://bucket/two", "--to", "new"),
}

#: Packages of a user's own, by names that ours once had: a regular one, a plain folder, and a module.
OF_A_USER = {
    "transforms/__init__.py": "",
    "transforms/shout.py": "def shout(text): return text.upper()",
    "schemas/words.py": "WORDS = ['a', 'b']",
    "pipelines.py": "NAME = 'mine'",
}
USE_BOTH = """
from pipelines import NAME
from schemas.words import WORDS
from transforms.shout import shout
from uldp.transforms import Aggregate
from uldp.schemas import CollectionSpec

print(shout(NAME), WORDS, Aggregate.__module__, CollectionSpec.__module__)
"""


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, uv = tmp_path_factory.mktemp("wheel"), Path(sys.executable).with_name("uv")
    # sdist, and from that the wheel
    run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(uv, "venv", "--quiet", "--python", sys.executable, "venv", cwd=folder)
    run(uv, "pip", "install", "--quiet", "--python", folder / "venv", f"{wheel}[beam]", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def without_beam(environment: Path) -> Path:
    """The folder of an environment without extras."""
    uv, (wheel,) = Path(sys.executable).with_name("uv"), environment.glob("*.whl")
    run(uv, "venv", "--quiet", "--python", sys.executable, "bare", cwd=environment)
    run(uv, "pip", "install", "--quiet", "--python", environment / "bare", wheel, cwd=environment)
    return environment / "bare" / "bin"


def test_it_holds_what_git_holds(environment: Path) -> None:
    folders = ("schemas", "mechanisms", "collector", "transforms", "pipelines")
    files = run("git", "ls-files", "--cached", "--others", "--exclude-standard", *folders, cwd=ROOT).splitlines()
    (wheel,) = environment.glob("*.whl")
    packed = [name for name in zipfile.ZipFile(wheel).namelist() if "/examples/" not in name]
    assert sorted(name.partition("/")[2] for name in files if (ROOT / name).exists()) == sorted(
        name for name in packed if ".dist-info/" not in name
    )


def test_it_hides_no_package_of_a_user_and_none_of_theirs_hides_it(environment: Path) -> None:
    project = environment / "project"
    for name, code in {**OF_A_USER, "use.py": USE_BOTH}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(code, encoding="utf-8")
    printed = run(environment / "venv" / "bin" / "python", "use.py", cwd=project)
    assert printed == "MINE ['a', 'b'] uldp.transforms.aggregate uldp.schemas.specs.collection\n"


def test_it_works_as_a_library(environment: Path) -> None:
    (environment / "use.py").write_text(USE_AS_A_LIBRARY, encoding="utf-8")
    printed = run(environment / "venv" / "bin" / "python", "use.py", cwd=environment).splitlines()
    assert "rejected not_avro" in printed
    (estimate,) = [line for line in printed if line.startswith("n 200 home ")]
    assert float(estimate.split()[-1]) > 0.9


def test_it_counts_without_beam(environment: Path, without_beam: Path) -> None:
    (environment / "bare.py").write_text(USE_WITHOUT_BEAM, encoding="utf-8")
    assert run(without_beam / "python", "bare.py", SPEC, cwd=environment) == "not_avro 200\n"


def test_a_command_that_needs_beam_names_the_extra(environment: Path, without_beam: Path) -> None:
    census = ROOT / "examples" / "census"
    places = {"spec": str(census / "spec.yaml"), "truth": str(census / "truth.csv")}
    assert "census-1990 version 1" in run(without_beam / "uldp", "check", places["spec"], cwd=environment)
    for name, arguments in OF_JOBS.items():
        command = [str(without_beam / "uldp"), *(each.format(**places) for each in arguments)]
        done = subprocess.run(command, cwd=environment, capture_output=True, text=True)
        said = done.stderr.partition("[beam]")[0]
        needs = "error: this command needs Apache Beam; install it: pip install 'uldp-stream"
        assert (name, done.returncode, said) == (name, 1, needs)
    assert not (environment / "new").exists()


def test_the_demo_names_what_is_missing_before_it_begins(environment: Path, without_beam: Path) -> None:
    for programs in (without_beam, environment / "venv" / "bin"):
        command = (programs / "uldp", "demo", "--out", "new")
        done = subprocess.run(command, cwd=environment, capture_output=True, text=True)
        said = "error: the demo needs jinja2; install it: pip install 'uldp-stream[beam,report] @ file://"
        assert (done.returncode, done.stderr.startswith(said)) == (1, True), done.stderr
    assert not (environment / "new").exists()


@pytest.mark.nightly
def test_the_command_runs_on_the_examples(environment: Path) -> None:
    uldp = environment / "venv" / "bin" / "uldp"
    where = run(
        uldp.with_name("python"),
        "-c",
        "from uldp.pipelines.demo import example; print(example('census'))",
        cwd=environment,
    )
    census = Path(where.strip())
    assert environment in census.parents
    assert "census-1990 version 1" in run(uldp, "check", census / "spec.yaml", cwd=environment)
    simulated = ("--truth", census / "truth.csv", "--users", "5000", "--to", "stream", "--duration", "20h")
    run(uldp, "simulate", census / "spec.yaml", *simulated, "--start", "2026-01-05", cwd=environment)
    run(uldp, "backfill", "--spec", census / "spec.yaml", "--from", "stream", "--to", "results", cwd=environment)
    assert "n 5,000" in run(uldp, "show", "results", cwd=environment)
    assert run(uldp, "export", "results", "--to", "f.csv", cwd=environment).startswith("wrote f.csv: ")
    done = subprocess.run(
        [uldp, "report", "results", "--out", "r.html"], cwd=environment, capture_output=True, text=True
    )
    assert done.returncode == 1
    # From the wheel that is installed: nobody knows whose the name is in an index.
    assert done.stderr.startswith(
        "error: a report needs jinja2; install it: pip install 'uldp-stream[report] @ file://"
    )


def test_another_build_gives_the_same_bytes(environment: Path, tmp_path: Path) -> None:
    # Another folder, another time and rights of files; the first wheel is built by way of the source distribution.
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            copy = tmp_path / "copy" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy)
            copy.chmod(0o600)
            os.utime(copy, (1_000_000_000, 1_000_000_000))
    build = (sys.executable, "-m", "build", "--installer", "uv", "--wheel", "--outdir", tmp_path, tmp_path / "copy")
    run(*build, cwd=tmp_path)
    (first,), (second,) = environment.glob("*.whl"), tmp_path.glob("*.whl")
    assert first.name == second.name
    assert hashlib.sha256(first.read_bytes()).digest() == hashlib.sha256(second.read_bytes()).digest()
