"""Segments of a local stream that are lost, and that an operator has given up: how many messages they held, and when.

A job accounts these messages as missing, as it does what a broker has removed. How many they are is stored once, when
they are given up, so that each job finds the same, whatever is lost or removed later.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from uldp.schemas.records import Missing
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.strict import Strict
from uldp.transforms.io.local.segments import DIGITS, Before, SegmentHeader, before_next, name_of, read_header
from uldp.transforms.io.message_files import StreamError, opened, packed_messages

_Number = Annotated[int, Field(ge=0, lt=10**DIGITS)]


class GivenUp(Strict):
    """A run of segments that were given up; times are in milliseconds."""

    first: _Number  # the number of the first segment
    last: _Number  # the number of the last one
    messages: Annotated[int, Field(ge=0, lt=2**62)]  # how many messages they held
    exact: bool  # whether the stream knows that number; else it is one a segment, and they held as many at least
    #: The latest publish time of the segment before, or that of ``before`` if there was none.
    after: Annotated[int, Field(ge=0, lt=2**62)]
    #: When the first message behind them was published; if there is none, an upper bound of their own times.
    before: Annotated[int, Field(ge=0, lt=2**62)]

    @property
    def bound(self) -> Literal["", "at least"]:
        """How the number of messages bounds that of the lost ones, as text; empty if it is exact."""
        return "" if self.exact else "at least"

    @property
    def segments(self) -> range:
        """The numbers of these segments."""
        return range(self.first, self.last + 1)

    def read(self, number: int, messages: int) -> int:
        """Return how many of their messages a job has read that goes on at ``number``, with ``messages`` before it."""
        return messages if self.exact else number - self.first

    def missing(self, stream: str, read: int = 0) -> Missing | None:
        """Return the record of the messages of a stream that were lost, without those that were ``read``; or None."""
        if self.messages <= read:
            return None
        return Missing(self.source(stream), read, self.messages - 1, self.after, self.before)

    def source(self, stream: str) -> str:
        """Return the name of this part of a stream in records, given the id of the stream."""
        return f"{stream}/{self.first:0{DIGITS}d}"


def disordered(given_up: Sequence[GivenUp], end: int) -> bool:
    """Return whether runs do not ascend, overlap, or do not end before a number."""
    firsts = [each.first for each in given_up] + [end]
    return any(not each.first <= each.last < following for each, following in zip(given_up, firsts[1:], strict=True))


def without(hole: range, given_up: Iterable[GivenUp]) -> Iterator[range]:
    """Yield the parts of a run of numbers that were not given up.

    >>> each = GivenUp(first=3, last=4, messages=2, exact=False, after=0, before=0)
    >>> list(without(range(2, 9), [each]))
    [range(2, 3), range(5, 9)]
    """
    start = hole.start
    for each in given_up:
        if each.last >= start and each.first < hole.stop:
            if start < each.first:
                yield range(start, each.first)
            start = each.last + 1
    if start < hole.stop:
        yield range(start, hole.stop)


def give_up(folder: Path, lost: range, earlier: Sequence[GivenUp], ended: int) -> GivenUp:
    """Find out what is known of lost segments; StreamError if one next to them is damaged, OSError if it is not opened.

    The difference of the headers around them is exact, of them together with earlier runs next to them. What the stream
    ends with was published before ``ended``, in milliseconds.
    """
    start, stop, beside = lost.start, lost.stop, list[GivenUp]()
    for each in reversed(earlier):
        if each.last + 1 == start:
            start = each.first
            beside.append(each)
    for each in earlier:
        if each.first == stop:
            stop = each.last + 1
            beside.append(each)
    one = _Neighbour.of(folder / name_of(start - 1)) if start > 0 else None
    other = _Neighbour.of(folder / name_of(stop))
    total = _between(None if one is None else one.behind, None if other is None else other.header.before, start)
    before = ended if other is None else other.published
    return GivenUp(
        first=lost.start,
        last=lost.stop - 1,
        messages=len(lost) if total is None else max(total - sum(each.messages for each in beside), 0),
        exact=total is not None and all(each.exact for each in beside),
        after=before if one is None else min(max(one.header.last_publish_time, 0), before),
        before=before,
    )


class _Neighbour(NamedTuple):
    """A segment next to lost ones: its header, how many messages there were behind it, and when its first came."""

    header: SegmentHeader
    behind: Before | None
    published: int

    @classmethod
    def of(cls, segment: Path) -> "_Neighbour | None":
        """Read a segment; None if it is not there."""
        if not segment.exists():
            return None
        with opened(segment) as file:
            first = next(packed_messages(file, str(segment)), None)
        try:
            header = read_header(segment)
            published = header.last_publish_time if first is None else int(first.publish_times[0])
            return cls(header, before_next(segment), max(published, 0))
        except (ValueError, KeyError) as error:
            raise StreamError(
                f"{plain(str(segment))}: not a segment ({error}); replace it by an undamaged file, or remove it"
            ) from error


def _between(one: Before | None, other: Before | None, start: int) -> int | None:
    """Return the difference of two numbers of messages; of a stream that is counted from ``start`` on, all of them."""
    if other is None:
        return None
    if other.since == start:
        return other.messages
    return None if one is None or one.since != other.since else max(other.messages - one.messages, 0)
