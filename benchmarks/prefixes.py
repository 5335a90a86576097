"""Strings that nobody lists: how many of the most frequent are found by their prefixes, and how long the search takes.

    python -m benchmarks.prefixes
    python -m benchmarks.prefixes --null 200
    python -m benchmarks.prefixes --peer
    python -m benchmarks.prefixes --names names.txt --only 2

Users hold 20,000 names, whose shares fall as those of Zipf's law with the exponent 1.1, in an order of each seed.
The names are drawn of those of Debian's packages that have 3 to 24 characters, which ``apt-cache pkgnames`` prints from
the index of this machine; ``--names`` takes others, one on each line. The pieces that spell them are learned from names
that no user holds.

Reports are drawn one by one by the mechanism, of symbols that the encoding gives to each name once.

``--null`` counts smaller runs in which something is found that is not there: of 60,000 users who hold the names alike,
so that no name is frequent, and of 60,000 users who hold them by Zipf's law.

``--peer`` cuts the names to 6 characters, and has 100,000 users at epsilon 4, for PEM of pure-ldp, which needs the
extra ``bench``. Of its oracles, only Apple's count mean sketch needs no array of all strings. It hashes text, which
xxhash of today refuses, and makes an array of None entries, which NumPy refuses: so text becomes bytes, and None 1.
"""

import argparse
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.encodings.string_encodings import PrefixEncoding
from uldp.mechanisms.families.prefixes.decoder import WalkDecoder
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.strings.cohorts import string_symbol
from uldp.mechanisms.strings.spelling import Spelling
from uldp.mechanisms.strings.walk import Walk
from uldp.schemas.arrays import Counts, Floats, Symbols
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

HELD, TOP, EXPONENT, LONGEST, SHORTEST = 20_000, 16, 1.1, 24, 3
ALPHABET = "a-z0-9+._-"
PIECES, LONGEST_PIECE, LENGTHS = 1500, 8, 7
#: Epsilon, reports, cohorts, and how many of the top are to be found.
SETTINGS = ((4.0, 1_000_000, 1024, 13), (2.0, 2_000_000, 4096, 11), (1.0, 4_000_000, 4096, 7))
SEEDS = 5
#: The characters of names for the peer, which takes time and memory for each further one.
CUT = 6
_REPORTS_AT_ONCE = 1 << 18


def names_of(file: Path | None) -> list[str]:
    """Return all names, sorted."""
    if file is None:
        text = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout
    else:
        text = file.read_text(encoding="utf-8")
    known = set("abcdefghijklmnopqrstuvwxyz0123456789+._-")
    return sorted(
        {line for line in text.lower().split() if SHORTEST <= len(line) <= LONGEST and known.issuperset(line)}
    )


def learn(names: Sequence[str], pieces: int) -> list[str]:
    """Return pieces that spell names by few of them, if each piece is the longest that fits.

    Candidates are the substrings that would spare the most characters; those stay that are used.
    """
    counts = Counter(
        name[start : start + size]
        for name in names
        for size in range(2, LONGEST_PIECE + 1)
        for start in range(len(name) - size + 1)
    )
    kept = sorted(counts, key=lambda piece: (-(len(piece) - 1) * counts[piece], piece))[: 4 * pieces]
    characters = sorted(set("".join(names)))
    for left in (3 * pieces, 2 * pieces, 3 * pieces // 2, pieces):
        spelling = Spelling([*kept, *characters])
        used = Counter(piece for name in names for piece in spelling.split(name) or () if len(piece) > 1)
        kept = sorted(used, key=lambda piece: (-(len(piece) - 1) * used[piece], piece))[:left]
    return sorted(kept)


def spec_of(epsilon: float, cohorts: int, strings: dict[str, object], **more: object) -> CollectionSpec:
    """Return the spec of a collection."""
    return CollectionSpec.parse(
        {
            "collection": "names",
            "version": 1,
            "domain": {"strings": strings},
            "mechanism": {"name": "prefixes", "epsilon": epsilon, "cohorts": cohorts, **more},
            "window": {"size": "1d"},
        }
    )


def draw_cells(spec: CollectionSpec, names: Sequence[str], shares: Floats, n: int, rng: np.random.Generator) -> Counts:
    """Draw the cells of n reports of users who hold these names."""
    protocol = build_protocol(spec)
    strata, decoder = protocol.mechanism, protocol.decoder
    assert isinstance(strata, Strata)
    assert isinstance(decoder, WalkDecoder)
    walk = decoder.walk
    users = rng.choice(len(names), n, p=shares)
    part = strata.draw(n, rng)
    cells = np.zeros(strata.statistic_size, dtype=np.int64)
    for number, first in enumerate(strata.first_symbols.tolist()):
        symbols = _symbols(names, number, walk)
        own = first + symbols[users[part == number]]
        for start in range(0, len(own), _REPORTS_AT_ONCE):
            payloads = strata.perturb(own[start : start + _REPORTS_AT_ONCE], rng)
            cells += np.bincount(payloads, minlength=len(cells))
    return cells


def _symbols(names: Sequence[str], number: int, walk: Walk) -> Symbols:
    if number == len(walk.lengths):
        return np.array([string_symbol(name, walk.longest) for name in names])
    encoding = PrefixEncoding(number, walk.lengths[number], walk.spelling, walk.longest)
    return np.array([encoding.symbol(name) for name in names])


@dataclass(frozen=True)
class Found:
    """What a search finds.

    Attributes:
        of_top: How many of the ``TOP`` most frequent names.
        all: How many names.
        false: How many that nobody holds.
        seconds: The seconds of a core that the estimate takes.
    """

    of_top: int
    all: int
    false: int
    seconds: float


def search(spec: CollectionSpec, names: Sequence[str], shares: Floats, n: int, seed: int) -> Found:
    """Search for names in n reports."""
    rng = np.random.default_rng([44, seed])
    held = rng.permutation(len(names))
    cells = draw_cells(spec, [names[place] for place in held], shares, n, rng)
    start = time.process_time()
    tables = build_protocol(spec).decoder.tables(cells, n, "auto")
    seconds = time.process_time() - start
    table = next((each for each in tables if each.name is TableName.FOUND), None)
    found = (
        set() if table is None else {key for key, value in zip(table.keys or (), table.values, strict=True) if value}
    )
    top = {names[place] for place in held[np.argsort(-shares, kind="stable")[:TOP]]}
    return Found(len(found & top), len(found), len(found - set(names)), seconds)


def null_runs(spec: CollectionSpec, names: Sequence[str], shares: Floats, n: int, runs: int) -> tuple[int, int]:
    """Return in how many runs a name is found, and in how many a string that nobody holds."""
    found = [search(spec, names, shares, n, 1000 + seed) for seed in range(runs)]
    return sum(run.all > 0 for run in found), sum(run.false > 0 for run in found)


def peer_finds(texts: Sequence[str], epsilon: float) -> set[str]:
    """Return the strings that PEM of pure-ldp finds among those of users, of 6 characters or fewer."""
    xxhash: Any = import_module("xxhash")
    of_bytes = xxhash.xxh64
    xxhash.xxh64 = lambda text, seed: of_bytes(text.encode() if isinstance(text, str) else text, seed=seed)
    oracle: Any = import_module("pure_ldp.core").FreqOracleServer
    init = oracle.__init__
    oracle.__init__ = lambda self, epsilon, d, index_mapper=None: init(self, epsilon, d or 1, index_mapper)
    sketch: Any = import_module("pure_ldp.frequency_oracles.apple_cms")
    pem: Any = import_module("pure_ldp.heavy_hitters.prefix_extending")
    sizes = {"k": 128, "m": 1024}
    shape = {
        "start_length": 0,
        "max_string_length": CUT,
        "fragment_length": 2,
        "alphabet": [*"abcdefghijklmnopqrstuvwxyz0123456789+.-", "*"],
        "padding_char": "*",
    }
    server = sketch.CMSServer(epsilon, **sizes)
    client = sketch.CMSClient(epsilon, server.get_hash_funcs(), sizes["m"])
    devices, collector = (
        pem.PEMClient(epsilon, fo_client=client, **shape),
        pem.PEMServer(epsilon, fo_server=server, **shape),
    )
    for text in texts:
        collector.aggregate(devices.privatise(text))
    return {str(found).rstrip("*") for found in collector.find_heavy_hitters(k=TOP)[0]}


def zipf(size: int, exponent: float = EXPONENT) -> Floats:
    """Return shares that fall as those of Zipf's law."""
    falling = np.asarray(np.arange(1, size + 1) ** -exponent, dtype=np.float64)
    return np.asarray(falling / falling.sum(), dtype=np.float64)


def _of_pieces(names: Sequence[str], others: Sequence[str], seeds: int, only: float | None) -> None:
    strings = {"longest": LONGEST, "alphabet": ALPHABET, "pieces": learn(others, PIECES)}
    print("| ε | n | cohorts | of the top 16 | by seed | found | false | seconds of a core |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for epsilon, n, cohorts, least in SETTINGS:
        if only is not None and epsilon != only:
            continue
        spec = spec_of(epsilon, cohorts, strings, depth=LENGTHS)
        runs = [search(spec, names, zipf(len(names)), n, seed) for seed in range(seeds)]
        mean = np.mean([run.of_top for run in runs])
        print(
            f"| {epsilon:g} | {n:,} | {cohorts:,} | {mean:.1f} (at least {least}) |"
            f" {', '.join(str(run.of_top) for run in runs)} | {np.mean([run.all for run in runs]):.1f} |"
            f" {sum(run.false for run in runs)} | {max(run.seconds for run in runs):.1f} |",
            flush=True,
        )


def _null(names: Sequence[str], others: Sequence[str], runs: int) -> None:
    strings = {"longest": LONGEST, "alphabet": ALPHABET, "pieces": learn(others, PIECES)}
    spec = spec_of(2.0, 512, strings, depth=LENGTHS)
    print("| users hold | runs | with a finding | with a string that nobody holds |\n| --- | --- | --- | --- |")
    for held, shares in (("all names alike", zipf(len(names), 0.0)), ("names by Zipf's law", zipf(len(names)))):
        found, false = null_runs(spec, names, shares, 60_000, runs)
        print(f"| {held} | {runs} | {found} | {false} |", flush=True)


def _peer(names: Sequence[str], seeds: int) -> None:
    spec = spec_of(4.0, 1024, {"longest": CUT, "alphabet": "a-z0-9+._-"}, step=2, depth=3)
    print("| seed | here | pure-ldp |\n| --- | --- | --- |")
    for seed in range(seeds):
        rng = np.random.default_rng([45, seed])
        shares: dict[str, float] = {}
        for name, share in zip(rng.permutation(names).tolist(), zipf(len(names)).tolist(), strict=True):
            shares[name[:CUT]] = shares.get(name[:CUT], 0.0) + share
        texts, law = [*shares], np.array([*shares.values()])
        top = {texts[place] for place in np.argsort(-law)[:TOP]}
        cells = draw_cells(spec, texts, law, 100_000, rng)
        decoder = build_protocol(spec).decoder
        assert isinstance(decoder, WalkDecoder)
        own = set(decoder.found(cells, 100_000)[:TOP])
        peer = peer_finds(rng.choice(texts, 100_000, p=law).tolist(), 4.0)
        print(f"| {seed} | {len(own & top)} | {len(peer & top)} |", flush=True)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=Path, help="file of names, one on each line")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", type=float, help="one epsilon")
    parser.add_argument(
        "--null", type=int, help="so many smaller runs in which something may be found that is not there"
    )
    parser.add_argument("--peer", action="store_true", help="against PEM of pure-ldp")
    arguments = parser.parse_args()
    everything = names_of(arguments.names)
    order = np.random.default_rng(44).permutation(len(everything))
    names, others = ([everything[place] for place in part] for part in np.split(order, [HELD]))
    if arguments.null:
        _null(names, others, arguments.null)
    elif arguments.peer:
        _peer(names, arguments.seeds)
    else:
        _of_pieces(names, others, arguments.seeds, arguments.only)


if __name__ == "__main__":
    main()
