"""What a command changes in its own process: signal handlers, the log, the standard streams.

They belong to the whole process, so only the command line uses this module. Libraries and jobs change none of them.
"""

import _thread
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, NoReturn, TextIO, cast

if TYPE_CHECKING:  # Beam takes a second to import
    import apache_beam as beam
    from apache_beam.runners.runner import PipelineResult


def stop_on_terminate() -> None:
    """Let SIGTERM stop the command as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def end_at_signals(end: Callable[[], object]) -> None:
    """Let SIGTERM and Ctrl-C call a function, after which the command ends by itself."""
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: end())


def interrupt() -> None:
    """Stop the command from another thread, as Ctrl-C does; a shell may have told it to ignore that signal itself."""
    signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGTERM)


def run_apart(pipeline: "beam.Pipeline") -> "PipelineResult":
    """Run a pipeline on Prism, and keep Prism running on Ctrl-C, which a terminal sends to all of its programs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Prism inherits this
    try:
        return pipeline.run()
    finally:
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, _stop_silently)


class Output:
    """What became of the standard streams."""

    def __init__(self) -> None:
        self.closed = False  # whether the program that reads one of them has closed it
        self.error: OSError | None = None  # another error of a write to them, which a library may have caught

    def note_closed(self) -> None:
        """Note that a pipe is closed, and let all further text go nowhere: nobody reads why the command ends."""
        self.closed = True
        for stream in (sys.stdout, sys.stderr):
            _discard(stream)

    def check(self) -> None:
        """Write out what was printed; OSError if that failed, for example on a full disk."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # as with >&-
                stream.flush()
        if self.error is not None:
            raise self.error


@contextmanager
def watched_output() -> Iterator[Output]:
    """Watch the standard streams until the context ends, so that a closed pipe is known whoever wrote to it.

    Characters that a stream has not are escaped. A write to a closed pipe raises ``BrokenPipeError`` in the main
    thread, which libraries may change, and stops the command from another one, as SIGTERM does.
    """
    output, before = Output(), (sys.stdout, sys.stderr)
    names = ("standard output", "standard error")
    watched = [stream and _Watched(stream, name, output) for stream, name in zip(before, names, strict=True)]
    sys.stdout, sys.stderr = cast(list[TextIO], watched)
    try:
        yield output
    finally:
        silent = isinstance(sys.stderr, _MainThreadOnly)  # workers may outlive the command until the process ends
        sys.stdout, sys.stderr = before
        if silent:
            sys.stderr = cast(TextIO, _MainThreadOnly(before[1]))


class _Watched:
    """A standard stream that notes when its pipe is closed. What follows an error goes nowhere."""

    def __init__(self, stream: IO[Any], name: str, output: Output) -> None:
        self._stream, self._name, self._output = stream, name, output

    @property
    def buffer(self) -> "_Watched":
        return _Watched(cast(TextIO, self._stream).buffer, self._name, self._output)

    def write(self, text: Any) -> int:
        try:
            return cast(int, self._try(self._stream.write, text))
        except UnicodeEncodeError:
            encoding = cast(TextIO, self._stream).encoding
            return cast(int, self._try(self._stream.write, text.encode(encoding, "backslashreplace").decode(encoding)))

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except OSError as error:
            _discard(self._stream)
            if error.errno != errno.EPIPE:
                self._output.error = OSError(error.errno, error.strerror, self._name)
                raise self._output.error from error
            self._output.note_closed()
            if threading.current_thread() is threading.main_thread():
                raise
            _stop_main_thread()
            return 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _discard(stream: IO[Any] | None) -> None:
    """Let all further text of a stream go nowhere; else Python would try again to write it when it ends."""
    with suppress(OSError):  # of a stream without a file
        if stream is not None:
            descriptor = stream.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, descriptor)
            os.close(nowhere)


def _stop_main_thread() -> None:
    """Stop the command as a signal does; who runs it in the background may have it ignore Ctrl-C."""
    handled = (stop for stop in (signal.SIGTERM, signal.SIGINT) if callable(signal.getsignal(stop)))
    if (stop := next(handled, None)) is not None:
        _thread.interrupt_main(stop)


class _MainThreadOnly:
    """A stream that passes on the main thread's text and drops the text of other threads."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text) if threading.current_thread() is threading.main_thread() else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _by_name(record: logging.LogRecord) -> bool:
    """Drop what is logged under no name: Beam alone does so. A logger's filter sees no records of other loggers."""
    return False


def silence_workers() -> None:
    """Keep what Beam's workers and runners print of a failure to themselves: the command says it, in one line."""
    logging.getLogger("PrismJobServer").disabled = True  # Beam sets its level
    logging.getLogger().addFilter(_by_name)
    sys.stderr = cast(TextIO, _MainThreadOnly(sys.stderr))


def _stop_silently(number: int, frame: object) -> NoReturn:
    """Stop as Ctrl-C does, without workers' tracebacks: Beam ends the job before code of ours that waits can run."""
    logging.disable()
    silence_workers()
    raise KeyboardInterrupt
