"""Records of rejected reports: of one message, or of many from one source, with everything that a replay needs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain, repeat
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from uldp.schemas.places import RunIndex, Runs, bounds_of, numbered, numbers_in, runs_of, size, united, without

#: So many messages of equal data share it, in a record of their own.
ALIKE = 16
#: No source numbers its messages beyond.
MAX_NUMBER = 10**18


@dataclass(frozen=True, slots=True)
class Rejected:
    """Reports of one or several messages that could not be counted for one reason; see ``rejected.avsc``.

    Attributes:
        bodies: The data of each message, in the order of their numbers; one alone if all have the same, and none if the
            messages are counted alone.
        publish_times: When the stream accepted each message that has a body here; of messages that share a body or have
            none, the first of them alone.
        runs: The numbers of several messages, whose positions differ in them alone; empty for one message.
    """

    stage: str
    reason: str
    detail: str
    bodies: tuple[bytes, ...]
    attributes: Mapping[str, str]
    publish_times: tuple[int, ...]
    source: str
    attempt: int
    software: str
    reports: int = 1
    runs: Runs = ()

    @property
    def messages(self) -> int:
        """Number of the messages."""
        return len(self.bodies) if len(self.bodies) > 1 else size(self.runs) or 1

    @property
    def stored(self) -> bool:
        """Whether the data of the messages is stored."""
        return bool(self.bodies)

    @property
    def publish_time(self) -> int:
        """When the stream accepted the first message."""
        return self.publish_times[0]

    @property
    def nbytes(self) -> int:
        """Number of bytes of the bodies, and of the attributes, whose characters count as one byte each."""
        return sum(map(len, self.bodies)) + sum(len(key) + len(value) for key, value in self.attributes.items())

    @property
    def place(self) -> tuple[str, Runs]:
        """What the messages are numbered in, and their numbers; no runs if they are not numbered."""
        found = numbered(self.source)
        if found is None:
            return self.source, ()
        return found[0], self.runs or ((found[1], found[1] + 1),)

    def each(self) -> Iterator[tuple[bytes, int]]:
        """Return the body and the publish time of each message; of none if they are not stored."""
        stored = zip(self.bodies, self.publish_times, strict=False)
        return repeat(next(stored), self.messages) if len(self.bodies) == 1 else stored

    def at(self, runs: Runs) -> "Rejected":
        """Return the part of these messages that has some of the numbers; ``runs`` is not empty."""
        bodies, times = self.bodies, self.publish_times
        if len(bodies) > 1:
            rows = np.searchsorted(numbers_in(self.place[1]), numbers_in(runs)).tolist()
            bodies, times = tuple([bodies[row] for row in rows]), tuple([times[row] for row in rows])
        return _of(self, runs, bodies, times)

    def apart(self) -> Iterator[Self]:
        """Yield a record of each message, or of all messages if they have the same data."""
        if len(self.bodies) < 2:
            yield self
            return
        prefix, runs = self.place
        each = self.reports // self.messages
        for number, body, time in zip(numbers_in(runs).tolist(), self.bodies, self.publish_times, strict=True):
            yield replace(
                self, source=f"{prefix}{number}", runs=(), bodies=(body,), publish_times=(time,), reports=each
            )

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``rejected.avsc`` describes."""
        # asdict would copy deeply, and it cannot copy a read-only mapping.
        value = {name: getattr(self, name) for name in _FIELDS} | {
            "attributes": dict(self.attributes),
            "bodies": [*self.bodies],
            "publish_times": [*self.publish_times],
        }
        return value | {"runs": np.diff(bounds_of(self.runs)).tolist()}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read what ``to_avro`` returned; ValueError if its runs, its reports and its data do not fit each other."""
        written, bodies, times = value["runs"], tuple(value["bodies"]), tuple(value["publish_times"])
        runs: Runs = ()
        if written:
            found = numbered(value["source"])
            if found is None or len(written) % 2 == 0 or min(written) < 1:
                raise ValueError("these are no runs of messages")
            bounds = [*accumulate([found[1], *written])]
            if bounds[-1] > MAX_NUMBER:
                raise ValueError("these are no numbers of messages")
            runs = tuple(zip(bounds[::2], bounds[1::2], strict=True))
        messages = size(runs) or 1
        if value["reports"] < 1 or value["reports"] % messages:
            raise ValueError("the messages have different numbers of reports, or none")
        if value["attempt"] < 1:
            raise ValueError("the messages were not tried")
        if len(bodies) not in (0, 1, messages) or len(times) != max(len(bodies), 1):
            raise ValueError(f"there are {len(bodies)} bodies and {len(times)} times of {messages} messages")
        return cls(**{**value, "runs": runs, "bodies": bodies, "publish_times": times})


_FIELDS = tuple(each.name for each in fields(Rejected))


def joined_rejected(records: Iterable[Rejected]) -> list[Rejected]:
    """Join records from one source and for one reason. Each message is in one of them.

    So many as ``ALIKE`` messages of equal data get a record of their own, and all others share one. So the records take
    no more memory than the messages took, and which records there are follows from the messages alone. The first of the
    records that are joined gives the detail.
    """
    members: dict[tuple[object, ...], list[Rejected]] = defaultdict(list)
    alone = []
    for record in records:
        prefix, runs = record.place
        if not runs:
            alone.append(record)
            continue
        attributes = tuple(sorted(record.attributes.items())) if record.attributes else ()
        each = record.reports // record.messages
        members[prefix, record.reason, record.stored, attributes, each, record.stage, record.software].append(record)
    return alone + [record for of_key in members.values() for record in _joined(of_key)]


def _joined(records: Sequence[Rejected]) -> Sequence[Rejected]:
    """Join records that differ in their places, their data, and what the first of them gives."""
    records = sorted(records, key=lambda record: record.place[1])
    if len(records) > 1:
        messages = sum(record.messages for record in records)
        if size(united(chain.from_iterable(record.place[1] for record in records))) < messages:
            return records  # their source gives several messages one place
    #: For each body that messages share, or none: their runs, each with the publish time of its first message.
    alike: dict[tuple[bytes, ...], list[tuple[tuple[int, int], int]]] = defaultdict(list)
    parts: list[npt.NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    bodies: list[bytes] = []
    times: list[int] = []
    for record in records:
        if len(record.bodies) == record.messages:
            parts.append(numbers_in(record.place[1]))
            bodies += record.bodies
            times += record.publish_times
        else:
            alike[record.bodies] += [(run, record.publish_time) for run in record.place[1]]
    numbers = np.concatenate(parts)
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers)
        numbers, ascending = numbers[order], order.tolist()
        bodies, times = [bodies[row] for row in ascending], [times[row] for row in ascending]
    if alike or len({*bodies}) <= len(bodies) - (ALIKE - 1):  # else none is there so often
        often = {body for body, n in Counter(bodies).items() if n >= ALIKE or (body,) in alike}
        rows: dict[bytes | None, list[int]] = defaultdict(list)
        for row, body in enumerate(bodies):
            rows[body if body in often else None].append(row)
        for body in often:
            alike[(body,)] += [(run, times[rows[body][0]]) for run in runs_of(numbers[rows[body]])]
        others = rows[None]
        numbers, bodies, times = numbers[others], [bodies[row] for row in others], [times[row] for row in others]
    joined = [
        _of(records[0], united(run for run, _ in runs), shared, (min(runs)[1],)) for shared, runs in alike.items()
    ]
    return joined + ([_of(records[0], runs_of(numbers), tuple(bodies), tuple(times))] if bodies else [])


def _of(record: Rejected, runs: Runs, bodies: tuple[bytes, ...], times: tuple[int, ...]) -> Rejected:
    """Return a record of other messages of the source, each of as many reports."""
    n = size(runs)
    return replace(
        record,
        bodies=bodies,
        publish_times=times,
        source=f"{record.place[0]}{runs[0][0]}",
        runs=runs if n > 1 else (),
        reports=record.reports // record.messages * n,
    )


def each_once(records: Iterable[Rejected]) -> Iterator[Rejected]:
    """Leave out what earlier records hold of the same messages for the same reason.

    A runner that tries a bundle again may cut it otherwise, and so write a message in two files. Messages without a
    number stay: nothing tells them apart. A message whose data one file holds counts once, although another file only
    counts it.
    """
    seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
    counted: list[Rejected] = []
    for record in records:
        prefix, runs = record.place
        if not runs:
            yield record
        elif not record.stored:
            counted.append(record)
        elif new := seen[prefix, record.reason].add(runs, record.bodies):
            yield record if new == runs else record.at(new)
    for record in counted:
        prefix, runs = record.place
        if new := seen[prefix, record.reason].add_counted(runs):
            yield record if new == runs else record.at(new)


class _Seen:
    """The messages of one source that earlier records hold for one reason. Of their data it knows hashes."""

    def __init__(self) -> None:
        self._index = RunIndex()
        self._records: list[tuple[Runs, npt.NDArray[np.int64]]] = []

    def add(self, runs: Runs, bodies: Sequence[bytes]) -> Runs:
        """Add messages, and return the numbers of those that are not there, or with other data."""
        hashes = np.fromiter(map(hash, bodies), dtype=np.int64, count=len(bodies))
        new = runs
        if earlier := self._index.overlapping(runs):
            before = self._by_hash([self._records[each] for each in earlier])
            by_hash = self._by_hash([(runs, hashes)]).items()
            new = united(chain.from_iterable(without(of_hash, before.get(key, ())) for key, of_hash in by_hash))
        self._index.add(runs)
        self._records.append((runs, hashes))
        return new

    def add_counted(self, runs: Runs) -> Runs:
        """Add messages whose data nobody knows, and return the numbers of those that are not there."""
        earlier = (self._records[each][0] for each in self._index.overlapping(runs))
        new = without(runs, united(chain.from_iterable(earlier)))
        if new:
            self._index.add(new)
            self._records.append((new, np.empty(0, dtype=np.int64)))
        return new

    @staticmethod
    def _by_hash(records: Iterable[tuple[Runs, npt.NDArray[np.int64]]]) -> dict[int, Runs]:
        """Return the numbers of the messages whose data has a hash."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for runs, hashes in records:
            if len(hashes) == 1:
                found[int(hashes[0])] += runs
            else:
                for number, key in zip(numbers_in(runs).tolist(), hashes.tolist(), strict=True):
                    found[key].append((number, number + 1))
        return {key: united(each) for key, each in found.items()}


def count_reasons(rejected: Iterable[Rejected]) -> Counter[str]:
    """Return the number of rejected reports by reason."""
    counts: Counter[str] = Counter()
    for record in rejected:
        counts[record.reason] += record.reports
    return counts
