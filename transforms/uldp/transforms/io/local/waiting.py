"""Segments that are there before the job reads them, as after a restart: which of them the runner may take at once.

The local runner pays a fixed price for a bundle, however few messages the bundle holds. So segments that wait are one
bundle, unless a window fires between them: then those behind come later, as if each segment had come alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.window import WindowSpec


@dataclass(frozen=True)
class Moments:
    """The times at which a watermark can make something happen; times in milliseconds.

    Windows end where slices begin. Ids expire at such a time plus the allowed lateness (see
    ``ServedCollection.remembered_for``).
    """

    recurring: frozenset[tuple[int, int]]  # pairs of a period and of the remainder of these times when divided by it

    @classmethod
    def of(cls, windows: Iterable[WindowSpec]) -> Self:
        """Return the times of some windows."""
        return cls(
            frozenset(
                (period, (milliseconds(window.offset) + remainder) % period)
                for window in windows
                for period in [milliseconds(window.slice)]
                for remainder in (0, milliseconds(window.allowed_lateness))
            )
        )

    def between(self, before: int | None, after: int) -> bool:
        """Return whether one of these times is in (before, after], or may be, before the first watermark.

        >>> hourly = Moments.of([WindowSpec(size="1h", allowed_lateness="90m")])
        >>> [hourly.between(minute * 60_000 - 1, minute * 60_000) for minute in (59, 60, 61, 90, 120)]
        [False, True, False, True, True]
        """
        return before is None or any(
            (after - remainder) // period > (before - remainder) // period for period, remainder in self.recurring
        )


class Waiting:
    """Segments that wait to be announced, each with the watermark before it."""

    #: Segments of an event. Their paths are in one message of gRPC, which takes 4 MiB, and a path up to 4 KiB.
    MAX_SEGMENTS = 512
    #: Bytes of several segments. A runner holds a bundle in memory; a segment of ``uldp simulate`` may be as large.
    MAX_BYTES = 4 << 20

    def __init__(self, moments: Moments) -> None:
        #: The watermark behind the last of them, in milliseconds; None if there was no message yet.
        self.watermark: int | None = None
        self.moments = moments  # the times at which a watermark makes something happen
        self._segments: list[tuple[Path, int | None]] = []
        self._nbytes: float = 0
        self._fires = False

    @property
    def urgent(self) -> bool:
        """Whether segments wait, or the watermark has come to where it makes something happen."""
        return bool(self._segments) or self._fires

    def takes(self, nbytes: float) -> bool:
        """Return whether another segment of that size may be announced with those that wait."""
        return not self._segments or (
            not self._fires and len(self._segments) < self.MAX_SEGMENTS and self._nbytes + nbytes <= self.MAX_BYTES
        )

    def add(self, segment: Path, nbytes: float) -> None:
        """Let a segment wait; its messages are not older than the watermark of now."""
        self._segments.append((segment, self.watermark))
        self._nbytes += nbytes

    def advance(self, watermark: int) -> None:
        """Advance the watermark, unless it is later already."""
        if self.watermark is None or watermark > self.watermark:
            self._fires |= self.moments.between(self.watermark, watermark)
            self.watermark = watermark

    def take(self) -> list[tuple[Path, int | None]]:
        """Remove and return the segments that wait, each with the watermark before it."""
        segments, self._segments = self._segments, []
        self._nbytes, self._fires = 0, False
        return segments
