"""The state that a runner keeps of a shard, and its timer, for steps that a test calls."""

from apache_beam.utils.timestamp import Timestamp

from uldp.transforms.remembered import unpack_ids

Hash = tuple[int, ...]


class Bag:
    """A runner's bag state."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []
        self.reads = 0

    def add(self, entry: bytes) -> None:
        self.entries.append(entry)

    def read(self) -> list[bytes]:
        self.reads += 1
        return list(self.entries)

    def clear(self) -> None:
        self.entries = []


class Cell:
    """A runner's state of one value."""

    def __init__(self) -> None:
        self.value: bytes | None = None

    def write(self, value: bytes) -> None:
        self.value = value

    def read(self) -> bytes | None:
        return self.value

    def clear(self) -> None:
        self.value = None


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
