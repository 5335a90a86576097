"""Processes that tests start: each ends with the test that started it, and is waited for by what it answers."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

#: Options of a JVM that runs for minutes, beside others: it compiles quickly rather than well.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

#: The first port that is handed out, and how many each process of the tests has to itself. They lie below those that
#: systems lend to connections and to who asks for any port: a daemon that is away finds its own free when it returns.
_FIRST_PORT, PORTS, _PROCESSES = 20_000, 500, 24


def _ports() -> Iterator[int]:
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
    began = os.getpid()  # two that are started by hand begin elsewhere
    return (_FIRST_PORT + process * PORTS + (began + n) % PORTS for n in itertools.count())


_PORT = _ports()


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on, and that was not returned for long."""
    for port in itertools.islice(_PORT, PORTS):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError(f"all {PORTS} ports of this process of the tests are taken")


def listens(port: int) -> bool:
    """Whether somebody listens on a port of 127.0.0.1."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
    """Return the first value of ``condition`` that is true; a server that does not answer well is not there yet.

    Looking takes no more than half a core.

    Raises:
        TimeoutError: if there is none in time; says ``what`` was waited for.
    """
    deadline = time.monotonic() + seconds
    while True:
        looked = time.monotonic()
        refused: OSError | None = None
        try:
            if value := condition():
                return value
        except OSError as error:
            refused = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s until {what}") from refused
        time.sleep(max(time.monotonic() - looked, 0.1))


@dataclass
class Daemon:
    """A process that runs until it is killed or stopped; a context manager.

    Attributes:
        command: What is run.
        log: The file of its output; a process that is started again appends.
        environment: What is set beside the environment of this process.
        starts_others: Whether it starts processes that end with it. It is a group of its own then, and is not ended by
            who ends the group of this process.
    """

    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    starts_others: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    def __enter__(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | self.environment,
                cwd=self.log.parent,  # Python finds there what it is to import, before all else
                start_new_session=self.starts_others,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self.kill()

    @property
    def pid(self) -> int:
        """The process, of which there is one."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill it, and all that it has started, with SIGKILL."""
        assert self._process is not None
        if self.starts_others:
            with contextlib.suppress(ProcessLookupError):  # nobody is left
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()
        self._process.wait()

    def start(self) -> None:
        """Start it again after it was killed."""
        self.__enter__()

    def wait_until(self, condition: Callable[[], T | None], what: str, seconds: float = 60.0) -> T:
        """Wait for something that this process brings about; see ``wait_until``.

        Raises:
            RuntimeError: if the process ends before; holds the end of its log.
        """

        def alive_and_condition() -> T | None:
            assert self._process is not None
            if self._process.poll() is not None:
                end = self.log.read_text(encoding="utf-8", errors="replace")[-4000:]
                raise RuntimeError(f"{self.log}: ended with {self._process.returncode} before {what}:\n{end}")
            return condition()

        return wait_until(alive_and_condition, what, seconds)


@dataclass
class Service:
    """Daemons that are started together; a context manager that begins when they answer.

    Attributes:
        folder: For logs, and what they keep.
    """

    folder: Path
    _stack: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        """Start the daemons, and wait until they answer."""
        raise NotImplementedError


@dataclass
class Server(Service):
    """One daemon that listens on a port, and can be killed and started again there; see ``_command``."""

    def _start(self, stack: ExitStack) -> None:
        self._port = free_port()
        self.endpoint = f"127.0.0.1:{self._port}"
        self._daemon = stack.enter_context(self._command(self._port))
        self._answers()

    def _command(self, port: int) -> Daemon:
        """Describe the daemon."""
        raise NotImplementedError

    def _answers(self) -> None:
        self._daemon.wait_until(lambda: listens(self._port), f"{type(self).__name__} listens")

    @property
    def pid(self) -> int:
        """The daemon's process."""
        return self._daemon.pid

    def kill(self) -> None:
        """Kill it with SIGKILL, and all that it has started."""
        self._daemon.kill()

    def start(self) -> None:
        """Start it again, where it was."""
        self._daemon.start()
        self._answers()
