"""A standalone Flink cluster on this machine: a JobManager, TaskManagers that can be killed, Beam's job server.

Each is a process of its own on 127.0.0.1. Flink comes from PyPI, the job server from Maven; both are kept in
``build/cluster``.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
#: What is downloaded once.
CACHE = ROOT / "build" / "cluster"
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
    """Return the folder of Flink's jars, downloaded if it is not there."""
    home = CACHE / FLINK / "deps"
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        name, _, version = FLINK.rpartition("-")
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        download = ["download", "--no-deps", "--dest", str(CACHE), f"{name}=={version}"]
        subprocess.run([*pip, *download], check=True)
        aside = CACHE / f".{FLINK}"
        with tarfile.open(CACHE / f"{FLINK}.tar.gz") as archive:
            archive.extractall(aside, filter="data")
        (aside / FLINK).rename(CACHE / FLINK)
    return home


def job_server_jars() -> Path:
    """Return the folder of the job server's class path, downloaded if it is not there."""
    jars = CACHE / "jobserver"
    if not jars.exists():
        aside = CACHE / ".jobserver"
        maven = ["mvn", "--quiet", "--batch-mode", "--file", str(DEPLOY / "pom.xml"), "dependency:copy-dependencies"]
        subprocess.run([*maven, f"-DoutputDirectory={aside}"], check=True)
        aside.rename(jars)
    return jars


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether somebody listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], T], what: str, seconds: float = 60.0) -> T:
    """Return the first value of ``condition`` that is true; a server that does not answer well is not there yet.

    Raises:
        TimeoutError: if there is none in time; says ``what`` was waited for.
    """
    deadline = time.monotonic() + seconds
    while True:
        refused: OSError | None = None
        try:
            if value := condition():
                return value
        except OSError as error:
            refused = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s until {what}") from refused
        time.sleep(0.1)


@dataclass
class Daemon:
    """A process that runs until it is killed or stopped; a context manager.

    Attributes:
        command: What is run.
        log: The file of its output; a process that is started again appends.
        environment: What is set beside the environment of this process.
    """

    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            environment = os.environ | self.environment
            self._process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, env=environment)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait_until(self, condition: Callable[[], T], what: str, seconds: float = 60.0) -> T:
        """Wait for something that this process brings about; see ``wait_until``.

        Raises:
            RuntimeError: if the process ends before; holds the end of its log.
        """

        def alive_and_condition() -> T:
            assert self._process is not None
            if self._process.poll() is not None:
                end = self.log.read_text(encoding="utf-8", errors="replace")[-4000:]
                raise RuntimeError(f"{self.log}: ended with {self._process.returncode} before {what}:\n{end}")
            return condition()

        return wait_until(alive_and_condition, what, seconds)


def java(main: str, jars: Path, *arguments: str, heap: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a class of jars."""
    found = shutil.which("java")
    if found is None:
        raise RuntimeError("java is not installed; Flink needs Java 11 or 17")
    opened = [f"--add-opens={module}=ALL-UNNAMED" for module in OPENED]
    jvm = [f"-Xmx{heap}", "-XX:+UseSerialGC", f"-Dlog4j.configurationFile={DEPLOY / 'log4j.properties'}", *options]
    return [found, *opened, *jvm, "-classpath", str(jars / "*"), main, *arguments]


@dataclass
class FlinkCluster:
    """A JobManager and TaskManagers with one slot each; a context manager that ends when all slots are there.

    The configuration is that of ``deploy/flink``, with addresses, folders and memory of its own.

    Attributes:
        folder: For logs, checkpoints and what Flink puts aside.
        size: How many TaskManagers.
    """

    folder: Path
    size: int = 2
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)
    _task_managers: list[Daemon] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._rest, rpc = free_port(), free_port()
        settings = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.bind-host": "127.0.0.1",
            "jobmanager.rpc.port": rpc,
            "rest.address": "127.0.0.1",
            "rest.bind-address": "127.0.0.1",
            "rest.port": self._rest,
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "io.tmp.dirs": self.folder / "tmp",
            "state.checkpoints.dir": (self.folder / "checkpoints").as_uri(),
            "state.savepoints.dir": (self.folder / "savepoints").as_uri(),
            "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.task.heap.size": "384m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.task.off-heap.size": "64m",
            "taskmanager.memory.managed.size": "128m",
            "taskmanager.memory.network.min": "64m",
            "taskmanager.memory.network.max": "64m",
            "taskmanager.memory.jvm-metaspace.size": "256m",
            "taskmanager.memory.jvm-overhead.min": "128m",
            "taskmanager.memory.jvm-overhead.max": "128m",
        }
        self._arguments = ["--configDir", str(DEPLOY), *(f"-D{key}={value}" for key, value in settings.items())]
        self._jars = flink_home() / "lib"
        with ExitStack() as stack:
            entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
            command = java(entry, self._jars, *self._arguments, heap="512m")
            job_manager = stack.enter_context(Daemon(command, self.folder / "jobmanager.log"))
            job_manager.wait_until(lambda: listens(self._rest), "the JobManager listens")
            for index in range(self.size):
                self._task_managers.append(stack.enter_context(self._task_manager(index)))
            wait_until(lambda: self.slots == self.size, f"{self.size} TaskManagers have registered")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _task_manager(self, index: int) -> Daemon:
        entry = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        memory = ["-XX:MaxDirectMemorySize=256m", "-XX:MaxMetaspaceSize=256m"]
        command = java(entry, self._jars, *self._arguments, heap="512m", options=memory)
        return Daemon(command, self.folder / f"taskmanager-{index}.log")

    @property
    def master(self) -> str:
        """Host and port of the JobManager, as ``--flink_master`` takes them."""
        return f"127.0.0.1:{self._rest}"

    @property
    def slots(self) -> int:
        """How many slots there are."""
        count: int = self.get("overview").get("slots-total", 0)
        return count

    def get(self, path: str) -> Any:
        """Ask the JobManager's REST interface, whose paths are in Flink's documentation."""
        with urllib.request.urlopen(f"http://{self.master}/{path}", timeout=10) as answer:
            return json.load(answer)

    def running_job(self) -> str:
        """Wait until a job runs, and return its id."""

        def running() -> list[str]:
            return [job["jid"] for job in self.get("jobs/overview")["jobs"] if job["state"] == "RUNNING"]

        return wait_until(running, "a job runs", seconds=120)[0]

    def completed_checkpoints(self, job: str) -> int:
        """How many checkpoints of a job are complete."""
        count: int = self.get(f"jobs/{job}/checkpoints")["counts"]["completed"]
        return count

    def cancel(self, job: str) -> None:
        """Cancel a job and wait until its slots are free; a result's own ``cancel`` only ends the job server's part."""
        request = urllib.request.Request(f"http://{self.master}/jobs/{job}?mode=cancel", method="PATCH")
        with urllib.request.urlopen(request, timeout=10):
            pass
        wait_until(lambda: self.get("overview")["slots-available"] == self.size, f"job {job} is cancelled")

    def kill_task_manager(self, index: int) -> None:
        """Kill a TaskManager with SIGKILL."""
        self._task_managers[index].kill()

    def start_task_manager(self, index: int) -> None:
        """Start a TaskManager again that was killed."""
        self._task_managers[index].__enter__()


@dataclass
class WorkerPool:
    """The service that starts the Python processes of TaskManagers; a context manager.

    It knows them by numbers that each TaskManager draws for itself, so several of them that share it stop each other's
    when a task ends. A stream's tasks do not end; a bounded job must be of parallelism 1.

    Attributes:
        folder: For its log.
    """

    folder: Path
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        port = free_port()
        self.endpoint = f"127.0.0.1:{port}"
        # It starts "python", whichever is first on the path.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={port}"]
        pool = Daemon(command, self.folder / "workers.log", {"PATH": path})
        with ExitStack() as stack:
            stack.enter_context(pool).wait_until(lambda: listens(port), "the worker pool listens")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


@dataclass
class JobServer:
    """Beam's job server, which turns pipelines into jobs of a cluster; a context manager.

    Attributes:
        folder: For its log and what pipelines stage.
        master: The cluster's ``FlinkCluster.master``.
    """

    folder: Path
    master: str
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        port = free_port()
        self.endpoint = f"127.0.0.1:{port}"
        arguments = [f"--flink-master={self.master}", "--job-host=127.0.0.1", f"--job-port={port}"]
        arguments += ["--artifact-port=0", "--expansion-port=-1", f"--artifacts-dir={self.folder / 'artifacts'}"]
        entry = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        server = Daemon(java(entry, job_server_jars(), *arguments, heap="512m"), self.folder / "jobserver.log")
        with ExitStack() as stack:
            stack.enter_context(server).wait_until(lambda: listens(port), "the job server listens")
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
