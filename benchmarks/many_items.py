"""Sets of many items: how well one round of ``set-olh`` finds the items that most users hold.

    python -m benchmarks.many_items --epsilon 1 --seeds 3

990,002 users hold sets of 41,270 items, as many as the clicks of Kosarak have. The size of a set is lognormal, 8 in the
mean, from 1 to 2,498 draws of items whose weights fall as a power of their rank; a device reports up to ``AT_MOST`` of
them. The score is the normalized cumulative rank (NCR) of the 64 items with the largest estimates: the first of the
true top 64 counts 64, the last 1, and any other item 0. SVIM (Wang, Li & Jha, "Locally Differentially Private Frequent
Itemset Mining", S&P 2018) has .46 at epsilon 1, and .79 at epsilon 2, by exact variances and normal noise.

The collector hashes each item for each report: a window takes minutes of a core.
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.encodings.set_encoding import padded
from uldp.mechanisms.families.sets.randomizer import SetHashing
from uldp.schemas.arrays import Counts, Floats, Symbols

ITEMS, USERS, AT_MOST, TOP = 41_270, 990_002, 4, 64
_AT_ONCE = 50_000


def sets(users: int, items: int, most: int, rng: np.random.Generator) -> Iterator[tuple[Symbols, Counts]]:
    """Yield what blocks of users report, shape (n, most) with -1 behind the items, and how many hold each item."""
    weights = (np.arange(1, items + 1) + 1.5) ** -1.15
    ends = np.cumsum(weights / weights.sum())
    for start in range(0, users, _AT_ONCE):
        n = min(_AT_ONCE, users - start)
        sizes = np.clip(np.rint(rng.lognormal(1.25, 1.28, n)), 1, 2498).astype(np.int64)
        drawn = np.minimum(np.searchsorted(ends, rng.random(int(sizes.sum())), side="right"), items - 1)
        user, item = np.divmod(np.unique(np.repeat(np.arange(n), sizes) * items + drawn), items)
        order = np.lexsort((rng.random(len(user)), user))  # the items of a user in a random order
        user, item = user[order], item[order]
        place = np.arange(len(user)) - np.searchsorted(user, user)
        rows, kept = np.full((n, most), -1, dtype=np.int64), place < most
        rows[user[kept], place[kept]] = item[kept]
        yield rows, np.bincount(item, minlength=items)


def cumulative_rank(estimates: Floats, truth: Counts, top: int = TOP) -> float:
    """Return the NCR of the items with the largest estimates."""
    points = {item: top - rank for rank, item in enumerate(np.argsort(-truth, kind="stable")[:top].tolist())}
    found = np.argsort(-estimates, kind="stable")[:top].tolist()
    return sum(points.get(item, 0) for item in found) / (top * (top + 1) / 2)


def measure(epsilon: float, users: int, items: int, most: int, rng: np.random.Generator) -> float:
    """Return the NCR of one window."""
    mechanism = SetHashing(items + most, epsilon, most)
    cells, truth = np.zeros(items + most, dtype=np.int64), np.zeros(items, dtype=np.int64)
    for rows, held in sets(users, items, most, rng):
        cells += mechanism.statistic(mechanism.perturb(padded(rows, items), rng))
        truth += held
    return cumulative_rank(mechanism.channel.unbiased(cells, users)[:items], truth)


def main() -> None:
    """Print a Markdown table."""
    options = read_options(__doc__, epsilon=1, users=USERS, most=AT_MOST, seeds=3)
    print_heading("epsilon", "users", "at most", f"NCR of the top {TOP}", "from", "to", "seconds of a core each")
    start = time.process_time()
    found = [
        measure(options.epsilon, options.users, ITEMS, options.most, np.random.default_rng(7 + seed))
        for seed in range(options.seeds)
    ]
    seconds = (time.process_time() - start) / options.seeds
    ends = f"{np.mean(found):.3f} | {min(found):.3f} | {max(found):.3f}"
    print(f"| {options.epsilon:g} | {options.users:,} | {options.most} | {ends} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
