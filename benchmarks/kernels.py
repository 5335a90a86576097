"""How fast reports are counted in memory: the kernels behind every window, and what they are measured against.

    python -m benchmarks.kernels

Random payloads, one core, no Beam. Runs alternate, so that a slow minute of the machine slows them all, and the table
shows medians. *Unpacked* is the plain way to count bits, 255 reports at a time in sums of a byte; *bincount* counts as
many reports of one symbol, the limit for those.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.randomizers.packed_bits import count_bits
from uldp.schemas.arrays import Counts

REPEATS = 15
#: Bits of a report, and reports: about as many as a bundle holds, and as a large batch. Each run lasts milliseconds.
CASES = ((64, 1_000), (64, 100_000), (625, 1_000), (625, 8_192), (625, 100_000), (12_800, 1_000), (12_800, 10_000))
SYMBOLS = 625
_REPORTS_A_RUN = 20_000


def unpacked(packed: npt.NDArray[np.uint8], size: int) -> Counts:
    """Do as ``count_bits``: unpack and sum as many rows at a time as a sum of bytes can hold."""
    counts = np.zeros(size, dtype=np.int64)
    for start in range(0, len(packed), 255):
        counts += np.unpackbits(packed[start : start + 255], axis=1, count=size).sum(axis=0, dtype=np.uint8)
    return counts


def rates(calls: Mapping[str, Callable[[], object]], n: int) -> dict[str, float]:
    """Run calls that each take n reports in turn, and return the median rate of each, in millions of reports/s."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    times = max(1, _REPORTS_A_RUN // n)
    for _ in range(REPEATS):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(times):
                call()
            seconds[name].append((time.perf_counter() - began) / times)
    return {name: n / statistics.median(taken) / 1e6 for name, taken in seconds.items()}


def measure(size: int, n: int, rng: np.random.Generator) -> dict[str, float]:
    """Measure n reports of so many bits, of which every tenth is sensitive, beside as many reports of a symbol.

    Raises:
        AssertionError: if the two ways to count differ.
    """
    packed = rng.integers(0, 256, (n, -(-size // 8)), dtype=np.uint8)
    symbols = rng.integers(0, SYMBOLS, n).astype(np.uint32)
    mechanism = UnaryEncoding(np.arange(size) % 10 == 0, 1.0, OUE_THETA)
    assert (unpacked(packed, size) == count_bits([packed], size)).all()
    calls: dict[str, Callable[[], object]] = {
        "unpacked": partial(unpacked, packed, size),
        "count_bits": partial(count_bits, [packed], size),
        "inspect": partial(mechanism.inspect, packed),
        "bincount": partial(np.bincount, symbols, minlength=SYMBOLS),
    }
    return rates(calls, n)


def main() -> None:
    """Print one Markdown table."""
    rng = np.random.default_rng(3)
    print("Millions of reports/s:\n")
    print(f"| bits | reports | unpacked | count_bits | | inspect | bincount, {SYMBOLS} symbols |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for size, n in CASES:
        rate = measure(size, n, rng)
        ratio = rate["count_bits"] / rate["unpacked"]
        cells = (f"{rate[name]:.1f}" for name in ("inspect", "bincount"))
        print(
            f"| {size:,} | {n:,} | {rate['unpacked']:.1f} | {rate['count_bits']:.1f} | {ratio:.1f}x | "
            f"{' | '.join(cells)} |"
        )


if __name__ == "__main__":
    main()
