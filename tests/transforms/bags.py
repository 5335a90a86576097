"""A runner's bag state of the ids of a shard."""

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


def held(bag: Bag) -> dict[int, list[Hash]]:
    """The hashes in a bag, by expiry."""
    found: dict[int, list[Hash]] = {}
    for lot, hashes in map(unpack_ids, bag.entries):
        found.setdefault(lot.until, []).extend(zip(*(words.tolist() for words in hashes), strict=True))
    return found
