"""Reports of many parts: one count for all parts whose payloads are cells, and a loop over the parts.

And reports of slices, by their number, beside reports of a collection without slices.

``python -m benchmarks.strata`` prints the table.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.rows import Row, in_turn, print_table, timed
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.cells import Cells
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Payloads, Symbols
from uldp.schemas.specs.collection import CollectionSpec

N = 100_000
REPEAT = 11
#: How many symbols each part has.
CASES = {
    "2 parts of 4 symbols": [4] * 2,
    "1,000 parts of 4 symbols": [4] * 1000,
    "1,000 parts of 2 to 61 symbols": [2 + number % 60 for number in range(1000)],
}
#: How many slices the reports are of; and the mechanisms, of so many values.
SLICES, NAMES, VALUES = (2, 50, 1000), ("rr", "oue"), 100


def at_once(strata: Mechanism, payloads: Payloads, groups: Symbols) -> list[Cells]:
    """Judge and count reports as a job does."""
    strata.inspect(payloads)
    return strata.tally([payloads], groups, 1)


def in_a_loop(strata: Strata, payloads: Payloads, groups: Symbols) -> list[Cells]:
    """Judge and count the reports of each part after those of the part before it."""
    named = np.searchsorted(strata.first_symbols, payloads, side="right") - 1
    cells = []
    for number, part in enumerate(strata.parts):
        rows = np.flatnonzero(named == number)
        own = payloads[rows] - np.uint32(strata.first_symbols[number])
        part.inspect(own)
        cells.append(part.tally([own], groups[rows], 1)[0])
    return cells


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure both ways; ``quick`` takes few reports."""
    n, rng = N // 10 if quick else N, np.random.default_rng(3)
    for label, sizes in CASES.items():
        parts = [RandomizedResponse(np.ones(size, dtype=np.bool_), 1.0) for size in sizes]
        strata = Strata(parts, [1 / len(parts)] * len(parts))
        sent = strata.perturb(rng.integers(0, strata.size, n), rng), np.zeros(n, dtype=np.int64)
        ways = {way.__name__: partial(timed, partial(way, strata, *sent)) for way in (at_once, in_a_loop)}
        seconds = in_turn(ways, 1 if quick else REPEAT)
        ratio = seconds["in_a_loop"] / seconds["at_once"]
        yield Row("strata", label, n, seconds["at_once"], remark=f"{ratio:.0f} times as fast as a loop over the parts")
    for name in NAMES:
        yield from _slices(name, n, 1 if quick else REPEAT)


def _slices(name: str, n: int, repeat: int) -> Iterator[Row]:
    """Measure what it takes to judge and count reports of slices."""
    alone, rng = _mechanism(name, None), np.random.default_rng(4)
    symbols, groups = rng.integers(0, VALUES, n), np.zeros(n, dtype=np.int64)
    ways = {"no slices": partial(timed, partial(at_once, alone, alone.perturb(symbols, rng), groups))}
    for slices in SLICES:
        of = _mechanism(name, slices)
        sent = of.perturb(symbols + VALUES * rng.integers(0, slices, n), rng)
        ways[f"{slices:,} slices"] = partial(timed, partial(at_once, of, sent, groups))
    seconds = in_turn(ways, repeat)
    for label, each in seconds.items():
        remark = f"{1e9 * each / n:.0f} ns a report, {each / seconds['no slices']:.1f} times those without slices"
        yield Row("strata", f"{name} of {VALUES} values, {label}", n, each, remark=remark)


def _mechanism(name: str, slices: int | None) -> Mechanism:
    """Return the mechanism of a collection with so many slices."""
    spec = {
        "collection": "slices",
        "version": 1,
        "domain": {"size": VALUES},
        "mechanism": {"name": name, "epsilon": 1.0},
        "window": {"size": "1d"},
        "by": None if slices is None else {"version": [f"v{number}" for number in range(slices)]},
    }
    return build_protocol(CollectionSpec.parse(spec)).mechanism


if __name__ == "__main__":
    print_table(rows())
