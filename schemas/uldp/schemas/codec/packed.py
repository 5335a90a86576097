"""Messages as columns: their bodies are slices of one buffer, and no message needs an object of its own."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from operator import itemgetter
from typing import Self, overload

import numpy as np

from uldp.schemas.arrays import Rows, Times
from uldp.schemas.records import NO_ATTRIBUTES, Message, as_attributes, as_body, as_milliseconds

#: The bytes that a message is assumed to need besides its data, when messages are grouped.
_MESSAGE_OVERHEAD = 1 << 7


@dataclass(frozen=True, slots=True, eq=False)
class Bodies:
    """Bodies of n messages, anywhere in a buffer."""

    buffer: bytes  # the bytes that hold them; there may be others between them
    starts: Rows  # shape (n,): the offset at which each body starts
    ends: Rows  # shape (n,): the offset at which it ends

    @classmethod
    def of(cls, bodies: Sequence[bytes]) -> Self:
        """Concatenate bodies."""
        lengths = np.fromiter(map(len, bodies), dtype=np.intp, count=len(bodies))
        ends = np.cumsum(lengths)
        return cls(b"".join(bodies), ends - lengths, ends)

    def concatenated(self) -> bytes:
        """Return the bodies without the bytes between them."""
        bounds = np.concatenate([self.starts, [len(self.buffer)]])
        if not bounds[0] and np.array_equal(bounds[1:], self.ends):
            return self.buffer
        return b"".join(self.at(np.arange(len(self))))

    def at(self, rows: Rows) -> list[bytes]:
        """Return the bodies in ``rows``."""
        ends = self.ends[rows].tolist()
        return [self.buffer[start:end] for start, end in zip(self.starts[rows].tolist(), ends, strict=True)]

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes:
        return self.buffer[self.starts[row] : self.ends[row]]


@dataclass(frozen=True, slots=True, eq=False)
class NumberedRuns:
    """Positions of n messages in a source that numbers them: a text, and a number that grows by one in a run."""

    texts: Sequence[str]  # the texts, as the name of a partition
    firsts: Rows  # shape (k,): the row at which each run starts, ascending from 0
    text_rows: Rows  # shape (k,): the row in ``texts`` of its text
    numbers: Times  # shape (k,): the number of its first message

    @classmethod
    def of(cls, texts: Sequence[str], text_rows: Rows, numbers: Times) -> Self:
        """Find the runs of messages; ``text_rows`` and ``numbers`` are of shape (n,)."""
        goes_on = (text_rows[1:] == text_rows[:-1]) & (numbers[1:] == numbers[:-1] + 1)
        firsts = np.concatenate([np.zeros(min(len(numbers), 1), np.intp), np.flatnonzero(~goes_on) + 1])
        return cls(texts, firsts, text_rows[firsts], numbers[firsts])

    @classmethod
    def join(cls, parts: Sequence["NumberedRuns"], lengths: Sequence[int]) -> "NumberedRuns":
        """Concatenate the positions of several parts of such lengths."""
        rows = [0, *accumulate(lengths)]
        texts = [0, *accumulate(len(part.texts) for part in parts)]
        return cls(
            [*chain.from_iterable(part.texts for part in parts)],
            np.concatenate([part.firsts + first for part, first in zip(parts, rows, strict=False)]),
            np.concatenate([part.text_rows + first for part, first in zip(parts, texts, strict=False)]),
            np.concatenate([part.numbers for part in parts]),
        )

    def take(self, rows: Rows) -> "NumberedRuns":
        """Return the positions of the messages in ``rows``."""
        return self.of(self.texts, *self.at(rows))

    def at(self, rows: Rows) -> tuple[Rows, Times]:
        """Return the rows of the texts of messages, and their numbers."""
        runs = np.searchsorted(self.firsts, rows, side="right") - 1
        return self.text_rows[runs], self.numbers[runs] + rows - self.firsts[runs]

    def __call__(self, row: int) -> str:
        """Return the position of the message in a row."""
        run = int(np.searchsorted(self.firsts, row, side="right")) - 1
        return f"{self.texts[self.text_rows[run]]}{int(self.numbers[run]) + row - int(self.firsts[run])}"


@dataclass(frozen=True, slots=True, eq=False)
class PackedMessages(Sequence[Message]):
    """Messages in the order in which they came. A message is made when it is asked for."""

    bodies: Bodies
    publish_times: Times  # shape (n,)
    attributes: Mapping[int, Mapping[str, str]]  # the attributes of each message that has any, by its row
    source: Callable[[int], str]  # returns the position of the message in a row

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "PackedMessages":
        """Pack messages, unless they are packed."""
        if isinstance(messages, PackedMessages):
            return messages
        # Field by field: zip would make an iterator of each message, and the garbage collector would look at them all.
        bodies, times, attributes, sources = (map(itemgetter(field), messages) for field in range(4))
        datas, published = [*bodies], [*times]
        # By kind, because a loop over the messages takes ten times as long; NumPy would cut floats.
        if not {*map(type, datas)} <= {bytes}:
            datas = [as_body(data) for data in datas]
        if not {*map(type, published)} <= {int}:
            published = [as_milliseconds(time, "publish_time") for time in published]
        return cls(
            Bodies.of(datas),
            np.fromiter(published, dtype=np.int64, count=len(messages)),
            {row: as_attributes(each) for row, each in enumerate(attributes) if each},
            [*sources].__getitem__,
        )

    @classmethod
    def join(cls, parts: Sequence["PackedMessages"]) -> "PackedMessages":
        """Concatenate the messages of several parts."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        rows = [0, *accumulate(map(len, parts))]
        at = [0, *accumulate(len(part.bodies.buffer) for part in parts)]
        starts = [part.bodies.starts + offset for part, offset in zip(parts, at, strict=False)]
        ends = [part.bodies.ends + offset for part, offset in zip(parts, at, strict=False)]

        def one_by_one(row: int) -> str:
            part = bisect_right(rows, row) - 1
            return parts[part].source(row - rows[part])

        sources = [part.source for part in parts if isinstance(part.source, NumberedRuns)]
        numbered = bool(parts) and len(sources) == len(parts)
        source = NumberedRuns.join(sources, [*map(len, parts)]) if numbered else one_by_one
        return cls(
            Bodies(
                b"".join([part.bodies.buffer for part in parts]),
                np.concatenate([np.empty(0, dtype=np.intp), *starts]),
                np.concatenate([np.empty(0, dtype=np.intp), *ends]),
            ),
            np.concatenate([np.empty(0, dtype=np.int64), *(part.publish_times for part in parts)]),
            {
                row + first: each
                for first, part in zip(rows, parts, strict=False)
                for row, each in part.attributes.items()
            },
            source,
        )

    def take(self, rows: Rows) -> "PackedMessages":
        """Return the messages in ``rows``."""
        places = rows.tolist()
        return PackedMessages(
            Bodies(self.bodies.buffer, self.bodies.starts[rows], self.bodies.ends[rows]),
            self.publish_times[rows],
            {new: self.attributes[row] for new, row in enumerate(places) if row in self.attributes}
            if self.attributes
            else {},
            self.source.take(rows) if isinstance(self.source, NumberedRuns) else lambda row: self.source(places[row]),
        )

    def in_milliseconds(self, units: int) -> "PackedMessages":
        """Return the messages with publish times in milliseconds, of which each has so many of the units of now."""
        return self if units == 1 else replace(self, publish_times=self.publish_times // units)

    @property
    def nbytes(self) -> int:
        """Size of the buffer in bytes, and of the attributes, whose characters count as one byte each."""
        texts = sum(len(key) + len(value) for each in self.attributes.values() for key, value in each.items())
        return len(self.bodies.buffer) + texts

    def __len__(self) -> int:
        return len(self.publish_times)

    @overload
    def __getitem__(self, rows: int) -> Message: ...

    @overload
    def __getitem__(self, rows: slice) -> "PackedMessages": ...

    def __getitem__(self, rows: int | slice) -> "Message | PackedMessages":
        if isinstance(rows, slice):
            return self.take(np.arange(len(self))[rows])
        row = range(len(self))[rows]
        attributes = self.attributes.get(row, NO_ATTRIBUTES)
        return Message(self.bodies[row], int(self.publish_times[row]), attributes, self.source(row))

    def __iter__(self) -> Iterator[Message]:
        return map(self.__getitem__, range(len(self)))


def message_bytes(message: Message) -> int:
    """Return the size of a message: of its data, and of its attributes, whose characters count as one byte each.

    >>> message_bytes(Message(b"body", 0, {"name": "value"}))
    13
    """
    size = len(message.data)
    if message.attributes:
        size += sum(len(name) + len(value) for name, value in message.attributes.items())
    return size


def grouped(messages: Iterable[Message], size: int) -> Iterator[list[Message]]:
    """Group messages in their order; the last one of a group fills it up to ``size`` bytes."""
    held: list[Message] = []
    room = size
    for message in messages:
        held.append(message)
        room -= _MESSAGE_OVERHEAD + message_bytes(message)
        if room <= 0:
            yield held
            held, room = [], size
    if held:
        yield held
