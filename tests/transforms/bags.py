"""The state that a runner keeps of a shard, and its timer, for steps that a test calls."""

from typing import Any

from apache_beam.coders import BytesCoder, Coder
from apache_beam.utils.timestamp import Timestamp

from uldp.transforms.remembered import unpack_ids

Hash = tuple[int, ...]


class Cell:
    """A runner's state of one value, as bytes."""

    def __init__(self, coder: Coder | None = None) -> None:
        self._coder = coder or BytesCoder()
        self.entries: list[bytes] = []
        self.reads = 0

    @property
    def value(self) -> Any:
        return self._coder.decode(self.entries[0]) if self.entries else None

    def read(self) -> Any:
        self.reads += 1
        return self.value

    def write(self, value: Any) -> None:
        self.entries = [self._coder.encode(value)]

    def clear(self) -> None:
        self.entries = []


class Bag(Cell):
    """A runner's bag state."""

    def read(self) -> list[Any]:
        self.reads += 1
        return list(map(self._coder.decode, self.entries))

    def add(self, entry: Any) -> None:
        self.entries.append(self._coder.encode(entry))


class Timer:
    """A timer that never fires, and the times at which it should, in milliseconds."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def set(self, time: Timestamp) -> None:
        self.times.append(time.micros / 1000)


def held(bag: Bag) -> dict[int, list[Hash]]:
    """The hashes in a bag, by expiry."""
    found: dict[int, list[Hash]] = {}
    for lot, hashes in map(unpack_ids, bag.entries):
        found.setdefault(lot.until, []).extend(zip(*(words.tolist() for words in hashes), strict=True))
    return found
