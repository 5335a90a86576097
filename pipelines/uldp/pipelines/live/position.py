"""How far a local job is, in a file beside its results while it runs, for whoever watches it from another process."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter

from uldp.schemas.regular_files import read_regular
from uldp.transforms.io.folders import aside_name

#: The file, which readers of results do not list. A job that ends removes it.
POSITION = ".position.json"


@dataclass(frozen=True)
class Position:
    """How far a job of a local stream is; times are in milliseconds since 1970."""

    at: int  # when this was so
    begun: int  # when the job began
    process: int  # the number of its process
    simulated: bool  # whether the stream has a simulated clock, so that its watermark says nothing of the lag
    watermark: int | None  # the watermark; None before the first message
    segments: int  # the number of segments that the job has read since it began
    messages: int  # the number of messages in them
    ahead: int  # the number of segments that are there and that it has not begun to read
    asked: int  # when the runner last asked for an event. While it counts a segment or writes a pane, it does not ask.
    spec_refused: int = 0  # the number of files of specs that the job refuses as they are now; see ``SpecFolder``

    def lag(self, now: int) -> int | None:
        """Return by how many milliseconds the watermark is behind a time; None if nobody can know."""
        return None if self.simulated or self.watermark is None else max(now - self.watermark, 0)

    @classmethod
    def read(cls, out: Path) -> Self | None:
        """Return the last position that a job wrote beside its results; None if there is none, or if it is damaged."""
        with suppress(OSError, ValueError):
            return TypeAdapter(cls).validate_json(read_regular(out / POSITION), strict=True)
        return None


class PositionFile:
    """Writes the position of a job ``every`` few seconds while the context lasts, and removes it at the end.

    A power cut may lose the file, and a full disk may keep the last one: nothing depends on it.
    """

    def __init__(self, out: Path, position: Callable[[], Position], every: float = 5.0) -> None:
        self._out, self._position, self._every = out, position, every
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="position", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(OSError):
            (self._out / POSITION).unlink()

    def _keep(self) -> None:
        self._write()
        while not self._ended.wait(self._every):
            self._write()

    def _write(self) -> None:
        aside = self._out / aside_name(POSITION)
        with suppress(OSError):
            try:
                aside.write_text(json.dumps(asdict(self._position())) + "\n", encoding="utf-8")
                aside.replace(self._out / POSITION)
            finally:
                aside.unlink(missing_ok=True)


def now_ms() -> int:
    """Return the present in milliseconds."""
    return time.time_ns() // 1_000_000
