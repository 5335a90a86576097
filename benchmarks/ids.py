"""The ids that a worker remembers: bytes of memory and of state, time, and the longest pause.

    python -m benchmarks.ids

A shard gets random ids, a block at a time, as deduplication does; then it gets all of them again. The pause is the
longest that one block took, by the processor, so that a machine that is shared does not lengthen it.
"""

import secrets
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.rows import Row, alone, clock, print_table
from uldp.collector.hashing import SECRET_BYTES
from uldp.collector.id_table import BLOCK
from uldp.collector.seen import SeenIds
from uldp.transforms.remembered import pack_ids

SIZES = 100_000, 1_000_000, 10_000_000, 40_000_000


class Kept(NamedTuple):
    """What it took to keep ids.

    Attributes:
        added: Seconds to add them all.
        again: Seconds to find that all are there.
        pause: Seconds of the longest block.
        memory: Bytes of memory an id in the end.
        growing: Bytes of memory an id at the most, after the first half of them.
        state: Bytes of state an id.
    """

    added: float
    again: float
    pause: float
    memory: float
    growing: float
    state: float


def keep(n: int, exact: bool) -> Kept:
    """Add ids to a set that keeps a hash of each, or all bits."""
    known = SeenIds(secrets.token_bytes(SECRET_BYTES))
    added = again = pause = growing = 0.0
    state = 0
    for repeat in range(2):
        rng = np.random.default_rng(1)
        for start in range(0, n, BLOCK):
            ids = rng.integers(0, 2**64, (min(BLOCK, n - start), 2), dtype=np.uint64)
            began = clock()
            lots = known.add(ids, 0, exact).lots
            taken = clock() - began
            added, again = (added + taken, again) if not repeat else (added, again + taken)
            pause = max(pause, taken)
            state += sum(len(pack_ids(*lot)) for lot in lots)
            if len(known) > n // 2:
                growing = max(growing, known.nbytes / len(known))
    return Kept(added, again, pause, known.nbytes / n, growing, state / n)


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure each size; ``quick`` takes the smallest alone."""
    for n in SIZES[:1] if quick else SIZES:
        for exact in (False, True):
            kept, megabytes = alone(keep, n, exact)
            remark = (
                f"{kept.memory:.1f} bytes an id, {kept.growing:.1f} while it grows, {kept.state:.1f} of state;"
                f" again: {kept.again / n * 1e9:.0f} ns an id; longest pause {kept.pause * 1e3:.0f} ms"
            )
            label = "ids in bytes, exact" if exact else "ids in bytes"
            yield Row("ids", label, n, kept.added, megabytes=megabytes, remark=remark)


if __name__ == "__main__":
    print_table(rows())
