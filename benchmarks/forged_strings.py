"""How many forged reports publish a string that nobody holds, and how many honest holders one needs.

    python -m benchmarks.forged_strings
    python -m benchmarks.forged_strings --users 24000 --null 1000

24,000 users hold 2,000 strings, whose shares fall by Zipf's law; epsilon is 4, and there are three lengths of prefixes
and whole strings. Forgers send reports without noise, of cohorts drawn as honest devices draw them:

- even: as many of each length, and of whole strings.
- whole strings: just enough of each length for the search to keep the prefixes, and all others of whole strings.
- of a candidate: whole strings alone, of a string that the spec names.
- one payload: each length, and whole strings, have one payload, which all of them send.

Of five windows each, the table says in how many the string is found, its mean share there, the flags, and in how many
it is found if the spec has ``assume_forgers: 0.01``. ``--null`` counts how many windows without forgers have a flag,
or a string that the search finds and that its own prefixes contradict.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.prefixes import draw_cells, zipf
from uldp.collector.estimating import tables_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.encodings.string_encodings import PrefixEncoding
from uldp.mechanisms.families.prefixes.decoder import WalkDecoder
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.strings.cohorts import string_symbol
from uldp.schemas.arrays import Counts
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import TableName

USERS, HELD, WINDOWS, TARGET = 24_000, 2_000, 5, "zebra"
LONGEST, LENGTHS, COHORTS, BUCKETS = 6, 3, 512, 56
_LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]
#: What the forgers of each row send: so many reports of each length, and so many of whole strings.
FORGED = {
    "even": [(41, 41), (55, 55), (70, 70)],
    "whole strings": [(45, 60), (45, 85), (45, 145), (45, 265)],
    "of a candidate": [(0, 60), (0, 120), (0, 240)],
    "one payload": [(41, 41)],
}
HONEST = (200, 300, 400, 500)


def spec_of(*, epsilon: float = 4.0, candidates: Sequence[str] = (), forgers: float | None = None) -> CollectionSpec:
    """Return the spec of a collection; with a large epsilon, its devices send reports without noise."""
    keys = {"name": "prefixes", "epsilon": epsilon, "cohorts": COHORTS, "buckets": BUCKETS}
    return CollectionSpec.parse(
        {
            "collection": "c",
            "version": 1,
            "domain": {"strings": {"longest": LONGEST, "alphabet": "a-z"}},
            "mechanism": keys | {"step": 2, "depth": LENGTHS},
            "discover": {"keep": 16, "most": 16},
            "window": {"size": "1d"},
            **({"candidates": list(candidates)} if candidates else {}),
            **({"assume_forgers": forgers} if forgers else {}),
        }
    )


def honest_cells(rng: Generator, users: int, holders: int = 0) -> Counts:
    """Draw the reports of users, and of holders of the target besides."""
    names = ["".join(rng.choice(_LETTERS, rng.integers(3, LONGEST + 1))) for _ in range(HELD)]
    cells = draw_cells(spec_of(), names, zipf(HELD), users, rng)
    return cells + draw_cells(spec_of(), [TARGET], np.ones(1), holders, rng) if holders else cells


def forged_cells(rng: Generator, of_each_length: int, whole: int, *, one: bool = False) -> Counts:
    """Draw the reports of forgers: a report without noise, of a device that holds the target."""
    protocol = build_protocol(spec_of(epsilon=20.0))
    strata, decoder = protocol.mechanism, protocol.decoder
    assert isinstance(strata, Strata)
    assert isinstance(decoder, WalkDecoder)
    walk, cells = decoder.walk, np.zeros(strata.statistic_size, dtype=np.int64)
    for number, count in enumerate([of_each_length] * LENGTHS + [whole]):
        symbol = string_symbol(TARGET, LONGEST)
        if number < LENGTHS:
            symbol = PrefixEncoding(number, walk.lengths[number], walk.spelling, LONGEST).symbol(TARGET)
        payloads = strata.perturb(np.full(count, strata.first_symbols[number] + symbol), rng)
        cells += np.bincount(payloads[:1].repeat(count) if one else payloads, minlength=len(cells))
    return cells


def _found(spec: CollectionSpec, cells: Counts) -> dict[str, float]:
    """Return the strings that a job publishes as found, with their shares."""
    n = int(cells.sum())
    pane, accounting = Pane(PaneKind.ON_TIME, 0), Accounting(received=n, counted=n)
    statistic = Statistic(
        *spec.key, "", window_start=0, window_end=86_400_000, pane=pane, cells=cells, accounting=accounting
    )
    decoder = build_protocol(spec).decoder
    tables = {table.name: table for table in tables_of(decoder, spec, statistic, "auto")}
    if TableName.FOUND not in tables:
        return {}
    found, shares = tables[TableName.FOUND], tables[TableName.SHARE].values.tolist()
    return {name: share for name, of, share in zip(found.keys or (), found.values, shares, strict=True) if of}


def _flags(spec: CollectionSpec, cells: Counts) -> list[str]:
    p_values = build_protocol(spec).decoder.p_values(cells, int(cells.sum()))
    return [flag.value for flag, p_value in p_values.items() if p_value < ALARM_LEVEL]


class Row(NamedTuple):
    """What some forgers, or honest holders, bring about; see the module."""

    kind: str
    reports: int
    found: int
    share: float
    flags: str
    found_if_assumed: int


def row(kind: str, users: int, of_each_length: int, whole: int = 0, *, windows: int = WINDOWS) -> Row:
    """Return the row of honest holders, or of forgers who send these numbers of reports."""
    candidates = [TARGET] if kind == "of a candidate" else []
    spec, assuming = spec_of(candidates=candidates), spec_of(candidates=candidates, forgers=0.01)
    found, flags, assumed, honest = [], Counter[str](), 0, kind == "honest holders"
    reports = of_each_length if honest else LENGTHS * of_each_length + whole
    for seed in range(windows):
        rng = np.random.default_rng([55, seed])
        cells = honest_cells(rng, users, of_each_length if honest else 0)
        if not honest:
            cells = cells + forged_cells(rng, of_each_length, whole, one=kind == "one payload")
        published = _found(spec, cells)
        found += [published[TARGET]] if TARGET in published else []
        assumed += TARGET in _found(assuming, cells)
        flags.update(_flags(spec, cells))
    shown = ", ".join(f"`{flag}` {count} of {windows}" for flag, count in flags.items()) or "none"
    return Row(kind, reports, len(found), float(np.mean(found)) if found else 0.0, shown, assumed)


def rows(users: int, windows: int = WINDOWS) -> Iterator[Row]:
    """Yield all rows."""
    for holders in HONEST:
        yield row("honest holders", users, holders, windows=windows)
    for kind, numbers in FORGED.items():
        for of_each_length, whole in numbers:
            yield row(kind, users, of_each_length, whole, windows=windows)


def false_alarms(users: int, windows: int) -> tuple[int, int]:
    """Return how many honest windows have a flag, and in how many the search leaves a string out."""
    spec, flagged, left_out = spec_of(candidates=[TARGET]), 0, 0
    decoder = build_protocol(spec).decoder
    assert isinstance(decoder, WalkDecoder)
    for seed in range(windows):
        cells = honest_cells(np.random.default_rng([56, seed]), users)
        flagged += bool(_flags(spec, cells))
        names = (*decoder.names, *decoder.found(cells, users))
        left_out += len(decoder.credible(names, cells, users)) < len(names)
    return flagged, left_out


def main() -> None:
    """Print a Markdown table, or the number of false alarms."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forged_strings", description=__doc__)
    parser.add_argument("--users", type=int, default=USERS, help=f"the number of honest users; default {USERS}")
    parser.add_argument("--null", type=int, default=0, help="count false alarms in so many honest windows")
    options = parser.parse_args()
    if options.null:
        flagged, left_out = false_alarms(options.users, options.null)
        print(f"of {options.null:,} honest windows, {flagged} have a flag, and {left_out} a string that is left out")
        return
    print("| Who | reports | string found | mean share | flags | found with `assume_forgers: 0.01` |")
    print("| --- | ---: | ---: | ---: | --- | ---: |")
    for kind, reports, found, share, flags, assumed in rows(options.users):
        shown = f"{found} of {WINDOWS} | {100 * share:.1f} % | {flags} | {assumed} of {WINDOWS}"
        print(f"| {kind} | {reports} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
