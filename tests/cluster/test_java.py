"""A pipeline in Java that takes its estimates from the transform in Python, by an expansion service, on Prism."""

import base64
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests import build
from tests.build import START
from tests.cluster.daemons import Daemon, free_port, listens
from tests.cluster.prism import prism
from tests.downloads import kept, maven
from uldp.collector.testing import fake_messages
from uldp.schemas.specs.collection import CollectionSpec

PROJECT = Path(__file__).with_name("java")
KEYS = {**build.MINIMAL, "domain": {"labels": ["red", "green", "blue"]}, "limits": {"min_reports": 2}}


def jars() -> Path:
    """The class path of the pipeline, which Maven builds once."""
    files = sorted(path for path in PROJECT.rglob("*") if path.is_file())
    content = [path.read_bytes() for path in files]
    return kept("java-pipeline", content, lambda folder: maven(PROJECT / "pom.xml", "package", f"-Djars={folder}"))


def daemon(name: str, folder: Path, *command: str) -> Daemon:
    """A server, whose workers find this Python by its name."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return Daemon(command, folder / f"{name}.log", {"PATH": path}, starts_others=True)


@pytest.mark.nightly
def test_java_estimates_by_the_transform_in_python(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(KEYS), encoding="utf-8")
    spec = CollectionSpec.load(tmp_path / "spec.yaml")
    sent = fake_messages(spec, {"red": 70, "green": 30}, START, seed=1)
    (tmp_path / "messages").write_bytes(b"".join(base64.b64encode(each.data) + b"\n" for each in sent))
    expansion, pool, jobs = free_port(), free_port(), free_port()
    python = (sys.executable, "-m")
    expand = (*python, "apache_beam.runners.portability.expansion_service_main", f"--port={expansion}")
    allowed = ("--fully_qualified_name_glob=uldp.transforms.*", "--environment_type=EXTERNAL")
    work = (*python, "uldp.pipelines.jobs.pool", f"--service_port={pool}")
    run = (str(prism()), f"--job_port={jobs}", "--serve_http=false", "--idle_shutdown_timeout=-1s")
    with (
        daemon("expansion", tmp_path, *expand, *allowed, f"--environment_config=127.0.0.1:{pool}") as service,
        daemon("pool", tmp_path, *work) as workers,
        daemon("prism", tmp_path, *run) as runner,
    ):
        for server, port in ((service, expansion), (workers, pool), (runner, jobs)):
            server.wait_until(partial(listens, port), "it listens")
        runs = ["--runner=PortableRunner", f"--jobEndpoint=127.0.0.1:{jobs}", "--defaultEnvironmentType=LOOPBACK"]
        # LOOPBACK has an address of its own when it runs; without one, Beam refuses to expand.
        runs += ["--defaultEnvironmentConfig=127.0.0.1:1", f"--expansionService=127.0.0.1:{expansion}"]
        files = [f"--spec={tmp_path / 'spec.yaml'}", f"--messages={tmp_path / 'messages'}", f"--publishTime={START}"]
        java = ["java", "-cp", f"{jars()}/*", "Estimates", *runs, *files, f"--rows={tmp_path / 'rows.csv'}"]
        done = subprocess.run(java, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(",") for line in (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()]
    assert {label: (quantity, n) for quantity, label, n, _ in rows} == dict.fromkeys(
        ("red", "green", "blue"), ("share", "100")
    )
    assert sum(float(share) for *_, share in rows) == pytest.approx(1)
