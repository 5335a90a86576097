"""What compose starts, started without an engine: Kafka, Flink, the entrypoint, the Python of the image, the job."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from tests.deploy.dockerfile import Image
from tests.deploy.test_compose import SERVICES
from tests.deploy.test_image import locked
from tests.deploy.test_topics import SCRIPT, kafka_commands
from tests.deploy.tools import complaints, needs_downloads
from tests.downloads import installed
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest

REPORTS = 300
JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"


def boot() -> Path:
    """Return the entrypoint of Beam's images."""
    version, _ = locked("requirements.lock")["apache-beam"]
    return installed("container", f"github.com/apache/beam/sdks/v2/python/container@v{version}")


def moved(command: list[str], here: Mapping[str, str]) -> list[str]:
    """Return a command with what is another here."""
    for name, value in here.items():
        assert any(name in option for option in command), name
        command = [option.replace(name, value) for option in command]
    return command


@needs_downloads
@pytest.mark.nightly
def test_the_job_of_compose_counts_what_is_sent(image: Image, tmp_path: Path) -> None:
    from tests.cluster.daemons import Daemon, Server, free_port, wait_until
    from tests.cluster.flink import FlinkCluster, java, job_server_jars
    from tests.cluster.kafka import KafkaBroker

    variables = [f"{name}={value}" for name, value in image.environment().items()]
    artifacts = free_port()

    @dataclass
    class Pool(Server):
        """The worker pool of compose, at a port of its own."""

        def _command(self, port: int) -> Daemon:
            here = {"50000": str(port), "/opt/apache/beam/boot": str(boot())}
            pool = [*SERVICES["pool-1"]["entrypoint"], *moved(SERVICES["pool-1"]["command"], here)]
            return Daemon(["env", "-i", *variables, *pool], self.folder / "pool.log")

    @dataclass
    class JobServer(Server):
        """Beam's, with the options that compose gives it."""

        master: str = ""

        def _command(self, port: int) -> Daemon:
            here = {
                "jobmanager:8081": self.master,
                "job-port=8099": f"job-port={port}",
                "artifact-port=8098": f"artifact-port={artifacts}",
                "/data": str(self.folder),
            }
            command = java(JOB_SERVER, job_server_jars(), *moved(SERVICES["jobserver"]["command"], here), heap="512m")
            return Daemon(command, self.folder / "jobserver.log")

    out = tmp_path / "results"

    def counted() -> int:
        return (
            sum(pane.accounting.counted for pane in newest(ResultsFolder(out).statistics()))
            if (out / "counts").exists()
            else 0
        )

    with (
        KafkaBroker(tmp_path / "kafka") as broker,
        FlinkCluster(tmp_path / "flink", size=1) as cluster,
        JobServer(tmp_path / "server", cluster.master) as server,
        Pool(tmp_path / "pool") as pool,
    ):
        assert complaints([SCRIPT], BOOTSTRAP=broker.servers, PATH=kafka_commands(tmp_path)) == ""
        here = {
            "kafka:9092": broker.servers,
            "/data/results": str(out),
            "/specs": str(image.path("/specs")),
            "jobserver:8099": server.endpoint,
            "jobserver:8098": f"127.0.0.1:{artifacts}",
            "localhost:50000": pool.endpoint,
            "--parallelism=2": "--parallelism=1",
        }
        command = [*SERVICES["job"]["entrypoint"], *moved(SERVICES["job"]["command"], here)]
        with Daemon(["env", "-i", *variables, *command], tmp_path / "job.log"):
            job = cluster.running_job()
            spec, truth = (str(image.path(f"/specs/manhattan/{name}")) for name in ("spec.yaml", "truth.csv"))
            seeds = count()

            def sent_and_counted() -> bool:
                now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                fleet = f"--users {REPORTS} --duration 3s --speed 1 --start {now} --seed {next(seeds)}".split()
                image.run("uldp", "simulate", spec, "--truth", truth, *fleet, "--to", f"kafka:{broker.servers}/reports")
                return counted() >= REPORTS

            # An early pane is published once enough reports have come behind it.
            wait_until(sent_and_counted, f"{REPORTS} reports are counted", seconds=180)
            cluster.cancel(job)
    assert "Provision info" in (tmp_path / "pool" / "pool.log").read_text(encoding="utf-8")  # the entrypoint was there
