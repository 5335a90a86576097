"""A runner's bag state of the ids of a shard."""

from uldp.transforms.remembered import unpack_ids

Id = tuple[int, int]


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


def held(bag: Bag) -> dict[int, list[Id]]:
    """The ids in a bag, by expiry."""
    found: dict[int, list[Id]] = {}
    for expiry, ids in map(unpack_ids, bag.entries):
        found.setdefault(expiry, []).extend(map(tuple, ids.tolist()))
    return found
