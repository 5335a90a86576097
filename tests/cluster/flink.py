"""A standalone Flink cluster on this machine: a JobManager, TaskManagers that can be killed, Beam's job server.

Each is a process of its own on 127.0.0.1. Flink comes from PyPI, the job server from Maven.
"""

import json
import os
import shutil
import sys
import tarfile
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster.daemons import SHORT_LIVED, Daemon, Server, Service, free_port, listens, wait_until
from tests.downloads import ROOT, kept, maven, pip

DEPLOY = ROOT / "deploy" / "flink"
FLINK = "apache-flink-libraries-1.19.3"

#: The JVM's own modules that Flink reaches into, from Java 17 on.
OPENED = [
    *(f"java.base/java.{package}" for package in ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text")),
    *(f"java.base/java.{package}" for package in ("time", "util", "util.concurrent", "util.concurrent.atomic")),
    "java.base/java.util.concurrent.locks",
    "java.base/sun.net.util",
]


def flink_home() -> Path:
    """Return the folder of Flink's jars."""

    def download(folder: Path) -> None:
        name, _, version = FLINK.rpartition("-")
        pip("download", "--no-deps", "--dest", folder, f"{name}=={version}")
        packed = folder / f"{FLINK}.tar.gz"
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
        packed.unlink()

    return kept("flink", FLINK, download) / FLINK / "deps"


def job_server_jars() -> Path:
    """Return the class path of the job server."""
    pom = DEPLOY / "pom.xml"

    def build(folder: Path) -> None:
        maven(pom, "package", f"-Djars={folder}")

    sources = [file.read_bytes() for file in sorted(DEPLOY.glob("src/**/*.java"))]
    return kept("jobserver", (pom.read_bytes(), sources), build)


def java(main: str, jars: Path, *arguments: str, heap: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a class of jars."""
    found = shutil.which("java")
    if found is None:
        raise RuntimeError("java is not installed; Flink needs Java 11 or 17")
    opened = [f"--add-opens={module}=ALL-UNNAMED" for module in OPENED]
    jvm = [f"-Xmx{heap}", *SHORT_LIVED, f"-Dlog4j.configurationFile={DEPLOY / 'log4j.properties'}", *options]
    return [found, *opened, *jvm, "-classpath", str(jars / "*"), main, *arguments]


@dataclass
class FlinkCluster(Service):
    """A JobManager and TaskManagers with one slot each.

    The configuration is that of ``deploy/flink``, with addresses, folders and memory of its own.

    Attributes:
        size: How many TaskManagers.
    """

    size: int = 2
    _task_managers: list[Daemon] = field(default_factory=list, init=False, repr=False)

    def _start(self, stack: ExitStack) -> None:
        self._rest, rpc = free_port(), free_port()
        # A process takes the first that is free.
        self._metrics = [free_port() for _ in range(1 + self.size)]
        settings = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.rpc.port": rpc,
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self._rest,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "metrics.reporter.prom.port": ",".join(map(str, self._metrics)),
            "io.tmp.dirs": self.folder / "tmp",
            "state.checkpoints.dir": (self.folder / "checkpoints").as_uri(),
            "state.savepoints.dir": (self.folder / "savepoints").as_uri(),
            # The delay doubles with each failure; here they are more in minutes than elsewhere in months.
            "restart-strategy.exponential-delay.max-backoff": "2 s",
            "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.task.heap.size": "384m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.task.off-heap.size": "64m",
            "taskmanager.memory.managed.size": "128m",
            "taskmanager.memory.network.min": "64m",
            "taskmanager.memory.network.max": "64m",
            "taskmanager.network.sort-shuffle.min-buffers": 32,  # of a batch, which shuffles much at once
            "taskmanager.memory.jvm-metaspace.size": "1g",  # each job loads Beam again
            "taskmanager.memory.jvm-overhead.min": "128m",
            "taskmanager.memory.jvm-overhead.max": "128m",
        }
        self._arguments = ["--configDir", str(DEPLOY), *(f"-D{key}={value}" for key, value in settings.items())]
        self._jars = flink_home() / "lib"
        self._environment = {"FLINK_PLUGINS_DIR": str(flink_home() / "plugins")}
        entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        command = java(entry, self._jars, *self._arguments, heap="512m")
        job_manager = stack.enter_context(Daemon(command, self.folder / "jobmanager.log", self._environment))
        job_manager.wait_until(lambda: listens(self._rest), "the JobManager listens")
        for index in range(self.size):
            self._task_managers.append(stack.enter_context(self._task_manager(index)))
        wait_until(lambda: self.slots == self.size, f"{self.size} TaskManagers have registered")

    def _task_manager(self, index: int) -> Daemon:
        entry = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        memory = ["-XX:MaxDirectMemorySize=256m", "-XX:MaxMetaspaceSize=1g"]
        command = java(entry, self._jars, *self._arguments, heap="512m", options=memory)
        return Daemon(command, self.folder / f"taskmanager-{index}.log", self._environment)

    @property
    def master(self) -> str:
        """Host and port of the JobManager, as ``--flink_master`` takes them."""
        return f"127.0.0.1:{self._rest}"

    @property
    def reporters(self) -> list[str]:
        """Host and port at which each process tells Prometheus its metrics, in no order."""
        return [f"127.0.0.1:{port}" for port in self._metrics]

    @property
    def slots(self) -> int:
        """How many slots there are."""
        count: int = self.get("overview").get("slots-total", 0)
        return count

    def get(self, path: str) -> Any:
        """Ask the JobManager's REST interface, whose paths are in Flink's documentation."""
        return self._ask(path)

    def _ask(self, path: str, method: str = "GET", body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.master}/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def running_jobs(self) -> list[str]:
        """Return the ids of the jobs that run."""
        return [job["jid"] for job in self.get("jobs/overview")["jobs"] if job["state"] == "RUNNING"]

    def running_job(self) -> str:
        """Wait until a job runs, and return its id."""
        return wait_until(self.running_jobs, "a job runs", seconds=120)[0]

    def checkpoints(self, job: str) -> dict[str, int]:
        """Count the checkpoints of a job: ``completed``, ``restored``, ``failed`` and others."""
        counts: dict[str, int] = self.get(f"jobs/{job}/checkpoints")["counts"]
        return counts

    def wait_for_checkpoints(self, job: str, more: int) -> None:
        """Wait until so many more checkpoints of a job are complete."""
        before = self.checkpoints(job)["completed"]
        wait_until(lambda: self.checkpoints(job)["completed"] >= before + more, f"{more} checkpoints", seconds=180)

    def records_read(self, job: str, step: str) -> list[int]:
        """Return how many elements each subtask has read of the first task whose name has ``step`` in it."""
        task, *_ = [vertex for vertex in self.get(f"jobs/{job}")["vertices"] if step in vertex["name"]]
        subtasks = self.get(f"jobs/{job}/vertices/{task['id']}")["subtasks"]
        return [subtask["metrics"]["read-records"] for subtask in subtasks]

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until its slots are free; a result's own ``cancel`` only ends the job server's part."""
        self._ask(f"jobs/{job}?mode=cancel", "PATCH")
        self._wait_for_slots(job)

    def newest_checkpoint(self, job: str) -> str:
        """Return where the newest checkpoint of a job is."""
        path: str = self.get(f"jobs/{job}/checkpoints")["latest"]["completed"]["external_path"]
        return path

    def checkpointed(self, job: str) -> bytes:
        """Return what the newest checkpoint of a job shares with no other one: names of states, among the rest."""
        folder = Path(urllib.parse.urlsplit(self.newest_checkpoint(job)).path)
        return b"".join(file.read_bytes() for file in sorted(folder.iterdir()))

    def stop_with_savepoint(self, job: str) -> str:
        """Stop a job behind a savepoint, without draining it, and return where that is."""
        trigger = self._ask(f"jobs/{job}/stop", "POST", {"drain": False})["request-id"]

        def location() -> str | None:
            answer = self.get(f"jobs/{job}/savepoints/{trigger}")
            operation = answer.get("operation") or {}
            if "failure-cause" in operation:
                raise RuntimeError(f"no savepoint of job {job}: {operation['failure-cause']['stack-trace'][:4000]}")
            found: str | None = operation.get("location")
            return found

        path = wait_until(location, f"job {job} has a savepoint", seconds=120)
        self._wait_for_slots(job)
        return path

    def _wait_for_slots(self, job: str) -> None:
        wait_until(lambda: self.get("overview")["slots-available"] == self.size, f"job {job} has ended")

    @property
    def task_managers(self) -> list[int]:
        """The processes of the TaskManagers."""
        return [daemon.pid for daemon in self._task_managers]

    def kill_task_manager(self, index: int) -> None:
        """Kill a TaskManager with SIGKILL."""
        self._task_managers[index].kill()

    def start_task_manager(self, index: int) -> None:
        """Start a TaskManager again that was killed."""
        self._task_managers[index].start()


@dataclass
class WorkerPool(Server):
    """What starts the Python processes of TaskManagers.

    It knows them by numbers that each TaskManager draws for itself, so several of them that share it stop each other's
    when a task ends. A stream's tasks do not end; a bounded job must be of parallelism 1.

    Attributes:
        environment: What its processes see beside the environment of this one.
    """

    environment: Mapping[str, str] = field(default_factory=dict)

    def _command(self, port: int) -> Daemon:
        # It starts "python", whichever is first on the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = [sys.executable, "-m", "uldp.pipelines.jobs.pool", f"--service_port={port}"]
        # Jobs of tests have sources that are defined in tests.
        environment = {"PATH": path, "PYTHONPATH": str(ROOT), **self.environment}
        return Daemon(command, self.folder / "workers.log", environment, starts_others=True)


@dataclass
class JobServer(Server):
    """Beam's job server, which turns pipelines into jobs of a cluster.

    Attributes:
        master: The cluster's ``FlinkCluster.master``.
    """

    master: str = ""

    def _command(self, port: int) -> Daemon:
        arguments = [f"--flink-master={self.master}", "--job-host=127.0.0.1", f"--job-port={port}"]
        arguments += ["--artifact-port=0", "--expansion-port=-1", f"--artifacts-dir={self.folder / 'artifacts'}"]
        entry = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        return Daemon(java(entry, job_server_jars(), *arguments, heap="512m"), self.folder / "jobserver.log")


@dataclass
class Flink(Service):
    """A cluster with all that a job of Beam's needs to run there.

    Attributes:
        size: How many TaskManagers.
    """

    size: int = 2

    def _start(self, stack: ExitStack) -> None:
        self.cluster = stack.enter_context(FlinkCluster(self.folder, self.size))
        self.workers = stack.enter_context(WorkerPool(self.folder))
        self.server = stack.enter_context(JobServer(self.folder, self.cluster.master))

    @property
    def arguments(self) -> list[str]:
        """What names it to Beam."""
        runner = ["--runner=PortableRunner", f"--job_endpoint={self.server.endpoint}"]
        return [*runner, "--environment_type=EXTERNAL", f"--environment_config={self.workers.endpoint}"]
