"""A small installation as processes: ``uldp collect`` and ``uldp stream`` by a folder of specs, and its operator."""

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.pipelines.year.clock import SetClock
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint
from uldp.transforms.io.local.segments import number_of

ROOT = Path(__file__).parents[3]
HANGS_AFTER_SECONDS = 300


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition of another process."""
    deadline = time.monotonic() + HANGS_AFTER_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Installation:
    """The processes, their folders and their clock; a context manager that ends them."""

    def __init__(self, folder: Path, start: int) -> None:
        self.specs, self.stream, self.out = folder / "specs", folder / "posted", folder / "out"
        self.specs.mkdir()
        self.clock = SetClock(folder / "clock")
        self.clock.set(start)
        self.log = (folder / "job.log").open("w")
        self.collect: subprocess.Popen[str] | None = None
        self.job: subprocess.Popen[bytes] | None = None
        self.segments = 0
        self._thread = ThreadPoolExecutor(1)
        self._keeping: Future[None] | None = None

    def __enter__(self) -> "Installation":
        return self

    def __exit__(self, *error: object) -> None:
        self._thread.shutdown()
        if self.collect is not None:
            self.kill_collect()
        if self.job is not None and self.job.poll() is None:
            self.job.kill()
            self.job.wait()
        self.log.close()

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "tests.pipelines.year.clock", str(self.clock.path), *map(str, arguments)]

    def run(self, *arguments: str | Path) -> str:
        """Run a command to its end, which has to be a good one."""
        done = subprocess.run(self.command(*arguments), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def write(self, name: str, text: str) -> None:
        """Put a spec into the folder in one step, as an operator does who has read the page."""
        (self.specs / f".{name}").write_text(text, encoding="utf-8")
        (self.specs / f".{name}").replace(self.specs / f"{name}.yaml")

    def start_collect(self) -> None:
        command = self.command("collect", "--specs", self.specs, "--to", self.stream, "--port", "0")
        self.collect = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.collect.stdout is not None
        line = next(line for line in self.collect.stdout if "/v1/" in line)
        port = int(line.partition("/v1/")[0].rpartition(":")[2])
        self._edge = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def start_stream(self) -> None:
        command = self.command("stream", "--specs", self.specs, "--from", self.stream, "--to", self.out)
        self.job = subprocess.Popen(command, cwd=ROOT, stdout=self.log, stderr=self.log)

    def stop_stream(self, how: signal.Signals) -> None:
        assert self.job is not None
        self.job.send_signal(how)
        assert self.job.wait(timeout=HANGS_AFTER_SECONDS) == (-9 if how is signal.SIGKILL else 130)

    def kill_collect(self) -> None:
        assert self.collect is not None
        self._edge.close()
        self.collect.kill()
        self.collect.communicate()

    def post(self, body: bytes) -> int:
        """Post as a device: again while there is no answer."""
        while True:
            try:
                self._edge.request("POST", "/v1/reports", body)
                answer = self._edge.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):  # the server has closed a connection that was idle
                self._edge.close()
                continue
            self.segments += answer.status == 202
            return answer.status

    @property
    def reached(self) -> int:
        """The number of segments that the job has begun to read; what follows from events before is written."""
        point = ResumePoint.read(self.out / RESUME)
        return 0 if point is None else number_of(point.last) + 1

    def keep_up(self, ahead: int) -> None:
        """Wait until the job has at most so many segments to begin with."""
        assert self.job is not None
        job = self.job
        until(lambda: self.segments - self.reached <= ahead or job.poll() is not None)
        assert job.poll() is None

    def begin_to_keep_house(self) -> None:
        """Begin with what an operator's timer does each week, while everything else goes on."""
        self.end_keeping_house()
        self._keeping = self._thread.submit(self._keep_house)

    def end_keeping_house(self) -> None:
        """Wait for the end of it, which has to be a good one."""
        if self._keeping is not None:
            self._keeping.result()

    def _keep_house(self) -> None:
        """Prune, compact, and remove the segments that no window needs."""
        for kind in ("late", "rejected", "few"):
            # Files have the times of the machine, and the command goes by the clock of the year.
            for path in (self.out / kind).rglob("*.avro"):
                if path.stat().st_mtime > self.clock():
                    os.utime(path, (self.clock(), self.clock()))
        self.run("prune", self.out, "--keep", "7d", "--stream", self.stream)
        self.run("compact", self.out)


def resident(process: "subprocess.Popen[bytes] | subprocess.Popen[str] | None") -> int:
    """The bytes of memory that a process has now."""
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def size_of(folder: Path) -> tuple[int, int]:
    """The number of files below a folder, and their bytes; files may go meanwhile."""
    sizes = []
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.stat(os.path.join(root, name)).st_size)
            except FileNotFoundError:
                continue
    return len(sizes), sum(sizes)
