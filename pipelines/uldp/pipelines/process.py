"""What a command changes in its own process: signal handlers, the log, the standard error stream.

They belong to the whole process, so only the command line uses this module. Libraries and jobs change none of them.
"""

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

if TYPE_CHECKING:  # Beam takes a second to import
    import apache_beam as beam
    from apache_beam.runners.runner import PipelineResult


def stop_on_terminate() -> None:
    """Let SIGTERM stop the command as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def run_apart(pipeline: "beam.Pipeline") -> "PipelineResult":
    """Run a pipeline on Prism, and keep Prism running on Ctrl-C, which a terminal sends to all of its programs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Prism inherits this
    try:
        return pipeline.run()
    finally:
        for stop in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stop, _stop_silently)


class _MainThreadOnly:
    """A stream that passes on the main thread's text and drops the text of other threads."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text) if threading.current_thread() is threading.main_thread() else len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _stop_silently(number: int, frame: object) -> NoReturn:
    """Stop the command as Ctrl-C does, without the tracebacks of Beam's worker.

    The worker runs in threads of this process. It logs and prints a traceback when its job ends. This handler must
    silence it, because Beam ends the job before any code of ours that waits for the job can run.
    """
    logging.disable()
    sys.stderr = cast(TextIO, _MainThreadOnly(sys.stderr))
    raise KeyboardInterrupt
