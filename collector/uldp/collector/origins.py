"""The messages that reports came in, as columns beside the reports: for what is decided after messages are decoded.

Only collections that limit what is counted of a sender have these columns.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from uldp.collector.partial import Partial, numbers_of
from uldp.collector.signals import SenderCounts, sender_digest
from uldp.schemas.arrays import Digests, Rows, Symbols, Texts, Times
from uldp.schemas.codec.packed import Bodies, NumberedRuns, PackedMessages
from uldp.schemas.records import KNOWN_ATTRIBUTES, SENDER, known_attributes

#: What a source numbers messages in, or the whole position of a message that it does not number; and then the names and
#: values of the known attributes of the message, in turn.
Stamp = tuple[str, ...]
#: The number of a message that its source does not number.
NOT_NUMBERED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Origins:
    """The messages of n reports."""

    senders: Digests  # shape (n,): digests of sender keys, 0 for no key
    event_times: Times  # shape (n,): what each report says itself
    published: Times  # shape (n,): publish time of the message of each report
    numbers: Times  # shape (n,): the message's number in its source, or ``NOT_NUMBERED``
    stamps: Texts  # shape (n,): a ``Stamp`` each; messages may share one

    @classmethod
    def of(cls, messages: PackedMessages, senders: Digests) -> Self:
        """Return one row for each message; see ``of_reports``."""
        n = len(messages)
        if isinstance(messages.source, NumberedRuns):
            text_rows, numbers = messages.source.at(np.arange(n))
            places = [messages.source.texts[row] for row in text_rows.tolist()]
        else:
            places, numbers = [messages.source(row) for row in range(n)], np.full(n, NOT_NUMBERED)
        found: dict[tuple[str | None, ...], Stamp] = {}
        attributes = {row: _known(each, found) for row, each in messages.attributes.items()}
        stamps = [(place, *attributes.get(row, ())) for row, place in enumerate(places)]
        return cls(senders, messages.publish_times, messages.publish_times, numbers, as_column(stamps))

    def of_reports(self, messages: Rows, event_times: Times) -> "Origins":
        """Return the origins of reports, by the row of each one's message."""
        return replace(self.take(messages), event_times=event_times)

    def take(self, rows: Rows | slice) -> "Origins":
        """Return the origins of the reports in ``rows``."""
        return Origins(
            self.senders[rows], self.event_times[rows], self.published[rows], self.numbers[rows], self.stamps[rows]
        )

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes, as if no two reports shared a stamp; characters count as one byte each."""
        texts = sum(sum(map(len, stamp)) for stamp in self.stamps.tolist())
        return 5 * self.numbers.nbytes + texts

    def by_message(self) -> Iterator[Rows]:
        """Yield the rows of the reports of each message. Messages without a number are told apart by time and stamp."""
        of, _ = distinct(self.stamps)
        order = np.lexsort((self.published, self.numbers, of))
        columns = np.stack([of, self.numbers, self.published])[:, order]
        ends = np.flatnonzero((columns[:, 1:] != columns[:, :-1]).any(axis=0)) + 1
        for start, end in pairwise([0, *ends.tolist(), len(order)] if len(order) else []):
            yield order[start:end]

    def messages(self, bodies: list[bytes]) -> PackedMessages:
        """Return the message of each report, with these bodies."""
        of, stamps = distinct(self.stamps)
        attributes = [dict(zip(stamp[1::2], stamp[2::2], strict=True)) for stamp in stamps]
        named = {row: attributes[stamp] for row, stamp in enumerate(of.tolist()) if attributes[stamp]}
        source: Any = NumberedRuns.of([stamp[0] for stamp in stamps], of, self.numbers)
        if (self.numbers == NOT_NUMBERED).any():
            source = [self._source(row) for row in range(len(of))].__getitem__
        return PackedMessages(Bodies.of(bodies), self.published, named, source)

    def pieces(self) -> list[Any]:
        """Return the bytes to write, as bytes and as arrays: columns of eight bytes, and the stamps that differ."""
        of, stamps = distinct(self.stamps)
        columns = self.senders, self.event_times, self.published, self.numbers, of
        return [*map(np.ascontiguousarray, columns), json.dumps(stamps).encode()]

    @classmethod
    def read(cls, encoded: bytes, n: int) -> Self:
        """Read what ``pieces`` wrote of n reports."""
        columns = np.frombuffer(encoded, np.int64, 5 * n).reshape(5, n)
        stamps = as_column(map(tuple, json.loads(encoded[40 * n :])))
        senders, event_times, published, numbers, of = columns
        return cls(senders.view(np.uint64), event_times, published, numbers, stamps[of])

    def _source(self, row: int) -> str:
        number = int(self.numbers[row])
        return f"{self.stamps[row][0]}{'' if number == NOT_NUMBERED else number}"


@dataclass(frozen=True, eq=False)
class Senders:
    """The senders of messages: a digest of each key, shape (n,), 0 for no key."""

    messages: PackedMessages
    digests: Digests

    @classmethod
    def of(cls, messages: PackedMessages, key: bytes) -> Self:
        """Digest the senders of messages; see ``sender_digest``."""
        senders = {row: each[SENDER] for row, each in messages.attributes.items() if SENDER in each}
        digests = {each: sender_digest(each, key) for each in {*senders.values()}}
        found = np.zeros(len(messages), dtype=np.uint64)
        found[[*senders]] = [digests[each] for each in senders.values()]
        return cls(messages, found)

    @cached_property
    def origins(self) -> Origins:
        """One row for each message; found when the first collection that limits what counts of a sender needs it."""
        return Origins.of(self.messages, self.digests)

    def counts(self, origins: Rows, slots: Times) -> Partial:
        """Count the reports of known senders by time slice, given the message and the slice of each report."""
        digests = self.digests[origins]
        known = np.flatnonzero(digests)
        order = known[np.argsort(slots[known], kind="stable")]
        starts, firsts = np.unique(slots[order], return_index=True)
        of_slices = map(SenderCounts.of, np.split(digests[order], firsts[1:]))
        counts = dict(zip(starts.tolist(), of_slices, strict=False))
        return Partial(starts, numbers_of(len(starts)), senders=counts)


def _known(attributes: Mapping[str, str], found: dict[tuple[str | None, ...], Stamp]) -> Stamp:
    """Return the names and values of the known attributes of a message; ``found`` are those of messages before it."""
    values = tuple(map(attributes.get, KNOWN_ATTRIBUTES))
    if (known := found.get(values)) is None:
        known = found[values] = tuple(text for item in known_attributes(attributes).items() for text in item)
    return known


def as_column(stamps: Iterable[Stamp]) -> Texts:
    """Return a column of stamps; NumPy would make a matrix of a list of tuples."""
    found = [*stamps]
    return np.fromiter(found, dtype=np.object_, count=len(found))


def distinct(stamps: Texts) -> tuple[Symbols, list[Stamp]]:
    """Return the place of each of n stamps in a list of those that differ, and this list."""
    each = stamps.tolist()
    places = {stamp: place for place, stamp in enumerate(dict.fromkeys(each))}
    return np.fromiter(map(places.__getitem__, each), dtype=np.int64, count=len(each)), [*places]


def joined(parts: Iterable[Origins]) -> Origins:
    """Concatenate the origins of several parts of columns."""
    return Origins(*(np.concatenate(columns) for columns in zip(*map(_columns, parts), strict=True)))


def taken(origins: Origins | None, rows: Rows | slice) -> Origins | None:
    """Return the origins of the reports in ``rows``, if there are any."""
    return None if origins is None else origins.take(rows)


def _columns(origins: Origins) -> tuple[Any, ...]:
    return origins.senders, origins.event_times, origins.published, origins.numbers, origins.stamps
