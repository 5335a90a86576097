"""Quantities over windows, as small line charts with bands: SVG paths of 4 kB that the page draws, in its colours."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from uldp.schemas.arrays import Floats
from uldp.schemas.records import iso

#: The size of a chart; the page stretches it.
WIDTH, HEIGHT = 1000, 100
#: A step between windows that is longer than so many usual steps is a gap.
_GAP = 1.5
_DAY = 86_400_000
_TICKS = 4


@dataclass(frozen=True, eq=False)
class Series:
    """A quantity in some windows, in the order of time."""

    starts: npt.NDArray[np.int64]  # starts of the windows in milliseconds, of shape (w,)
    ends: npt.NDArray[np.int64]  # their ends, of shape (w,)
    values: Floats  # the quantity in each window, of shape (w,)
    low: Floats | None = None  # lower ends of its intervals, of shape (w,); None without intervals
    high: Floats | None = None  # upper ends

    @property
    def middles(self) -> Floats:
        """The middle of each window in milliseconds, of shape (w,)."""
        return (self.starts + self.ends) / 2

    def least_and_most(self) -> tuple[float, float]:
        """Return the ends of an axis that holds zero, all values and all intervals."""
        arrays = [each for each in (self.values, self.low, self.high) if each is not None]
        least = min(0.0, *(float(each.min()) for each in arrays))
        return least, max(max(float(each.max()) for each in arrays), least + 1e-9)


@dataclass(frozen=True)
class Chart:
    """A drawn series: the path of its line, that of the band of its intervals, and the ends of its axis."""

    line: str
    band: str
    least: float
    most: float


@dataclass(frozen=True)
class Span:
    """The time that a chart shows, in milliseconds."""

    start: int
    end: int

    def at(self, times: Floats) -> Floats:
        """Return the places of times on the chart, of the same shape."""
        return (times - self.start) * (WIDTH / max(self.end - self.start, 1))

    def percent(self, times: Floats) -> Floats:
        """Return the places of times in percent of the width, of the same shape."""
        return self.at(times) * (100 / WIDTH)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield places in percent of the width with the time there: days, or in a short span days and minutes."""
        short = self.end - self.start < 3 * _DAY
        days = set[str]()
        for i in range(_TICKS):
            day, minute = iso(self.start + (self.end - self.start) * i // _TICKS)[:16].split("T")
            # A year does not fit, and each window names it.
            text = (minute if day in days else f"{day[5:]} {minute}") if short else day
            days.add(day)
            yield 100 * i / _TICKS, text


def draw(series: Series, span: Span) -> Chart:
    """Draw a series, from the start of its first window to the end of its last; a gap between windows is a gap."""
    least, most = series.least_and_most()
    lines, bands = [], []
    for run in _runs(series):
        middles = series.middles[run]
        x = span.at(np.concatenate([series.starts[run][:1], middles, series.ends[run][-1:]]))
        lines.append(_path(x, _height(series.values[run], least, most)))
        if series.low is not None and series.high is not None:
            low, high = (_height(each[run], least, most) for each in (series.low, series.high))
            bands.append(_path(np.append(x, x[::-1]), np.append(high, low[::-1])) + "Z")
    return Chart("".join(lines), "".join(bands), least, most)


def _runs(series: Series) -> list[slice]:
    """Return the runs of windows that follow each other without a gap."""
    middles = series.middles
    steps = np.diff(middles)
    cuts = np.flatnonzero(steps > _GAP * np.median(steps)) + 1 if len(steps) else np.array([], dtype=np.intp)
    edges = [0, *cuts.tolist(), len(middles)]
    return [slice(start, end) for start, end in pairwise(edges)]


def _height(values: Floats, least: float, most: float) -> Floats:
    """Return how far below the top of the chart values are, those at both ends twice: they fill their windows."""
    height: Floats = HEIGHT * (most - values) / (most - least)
    return np.concatenate([height[:1], height, height[-1:]])


def _path(x: Floats, y: Floats) -> str:
    points = np.rint(np.stack([x, y], axis=1)).astype(np.int64).tolist()
    return "M" + "L".join(f"{at} {height}" for at, height in points)
