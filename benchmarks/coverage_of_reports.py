"""How often published intervals cover the truth, for every mechanism that a spec can name: by reports of devices.

    python -m benchmarks.coverage_of_reports --trials 1000 --users 300 3000 30000

The population is that of ``benchmarks.coverage``: 100 values, of which 20 are sensitive where a mechanism protects some
alone, with shares from 1e-6 to 0.2, and epsilon 2. Devices encode and perturb what they hold, and the collector
tallies and decodes it, so that every step of a protocol counts. Numbers are of a beta distribution with the mean 1/4.
Candidates of strings are the same 100 values, and sets hold one of them. A record samples one of its attributes.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage import (
    EPSILON,
    RARE,
    SIZE,
    TRIALS,
    Coverage,
    covers,
    mean_of,
    population,
    print_heading,
    print_row,
)
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Ranking
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table, TableName

USERS = (300, 3_000, 30_000)
# Reports that are in memory at once.
_REPORTS_AT_ONCE = 30_000

_VALUES, _TWO, _NUMBER, _STRINGS = (
    {"size": SIZE},
    {"size": 2},
    {"number": {"low": 0.0, "high": 1.0}},
    {"strings": {"longest": 8}},
)
_SPELLED = {"strings": {"longest": 8, "alphabet": "0-9"}}
_SETS = {"set": {"of": {"size": SIZE}, "at_most": 3}}
#: The numbers of users, Beta(1, 3).
_SHAPE = (1.0, 3.0)
#: The odds of candidates in pairs of them, as of Plackett and Luce.
_WORTHS = np.array([1.0, 1.5, 2.0, 4.0])
_SENSITIVE = {"sensitive": list(range(0, SIZE, 5))}
_ASKED = {"candidates": [str(value) for value in range(SIZE)]}


def _keys(name: str, domain: Mapping[str, Any] = _VALUES, **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": EPSILON, **parameters}}


#: The keys of the specs.
SPECS: Mapping[str, Mapping[str, Any]] = {
    "identity": {"domain": _VALUES, "mechanism": {"name": "identity"}},
    "rr": _keys("rr"),
    "warner": _keys("warner", _TWO),
    "mangat": _keys("mangat", _TWO) | {"sensitive": [0]},
    "rappor": _keys("rappor", theta=0.6),
    "sue": _keys("sue"),
    "oue": _keys("oue"),
    "oue with a permanent response": _keys("oue", lasting_epsilon=4.0),
    "she": _keys("she"),
    "the": _keys("the"),
    "ss": _keys("ss"),
    "set-ss": _keys("set-ss", _SETS),
    "set-olh": _keys("set-olh", _SETS),
    "olh": _keys("olh"),
    "blh": _keys("blh"),
    "hrr": _keys("hrr"),
    "linear-olh": _keys("linear-olh"),
    "pgr": _keys("pgr"),
    "bit-flip": _keys("bit-flip", bits=20),
    "metric": _keys("metric", columns=10),
    "idue": {
        "domain": _VALUES,
        "mechanism": {"name": "idue", "groups": [{"values": list(range(10)), "epsilon": 1.0}, {"epsilon": EPSILON}]},
    },
    "tree": _keys("tree"),
    "levels": {
        "domain": _VALUES,
        "mechanism": {
            "name": "levels",
            "levels": {"strict": {"epsilon": 1.0, "share": 0.3}, "open": {"epsilon": EPSILON, "share": 0.7}},
            "of": {"name": "oue"},
        },
    },
    "urr": _keys("urr") | _SENSITIVE,
    "urap": _keys("urap") | _SENSITIVE,
    "uoue": _keys("uoue") | _SENSITIVE,
    "uhr": _keys("uhr") | _SENSITIVE,
    "uss": _keys("uss") | _SENSITIVE,
    "ubd": _keys("ubd") | _SENSITIVE,
    "ubd with a permanent response": _keys("ubd", lasting_epsilon=4.0) | _SENSITIVE,
    "duchi": _keys("duchi", _NUMBER),
    "block": _keys("block", _NUMBER),
    "hybrid": _keys("hybrid", _NUMBER),
    "geometric": _keys("geometric", _NUMBER),
    "pairs": _keys("pairs", {"ranking": {"of": [f"c{i}" for i in range(len(_WORTHS))]}}),
    "bloom": _keys("bloom", _STRINGS) | _ASKED,
    "cohort-olh": _keys("cohort-olh", _STRINGS, cohorts=1024) | _ASKED,
    "prefixes": _keys("prefixes", _SPELLED, cohorts=1024, depth=2) | _ASKED,
    "sample-one": {
        "domain": {"record": {"place": _VALUES, "hours": _NUMBER}},
        "mechanism": {
            "name": "sample-one",
            "epsilon": EPSILON,
            "of": {"place": {"name": "oue", "share": 0.7}, "hours": {"name": "block", "share": 0.3}},
        },
    },
    "marginals": {
        "domain": {"record": {"place": _VALUES, "new": _TWO, "own": _TWO}},
        "mechanism": {"name": "marginals", "epsilon": EPSILON, "views": "pairs"},
    },
    "she with a permanent response": _keys("she", lasting_epsilon=4.0),
}


def build(name: str) -> tuple[CollectionSpec, LdpProtocol]:
    """Build the spec and the protocol of a mechanism."""
    common = {"collection": "coverage", "version": 1, "window": {"size": "1d"}}
    spec = CollectionSpec.parse({**common, **SPECS[name]}, base=Path())
    return spec, build_protocol(spec)


def measure(name: str, n: int, trials: int = TRIALS) -> Coverage:
    """Simulate windows of n devices."""
    spec, protocol = build(name)
    rng = np.random.default_rng([18, n, list(SPECS).index(name)])
    windows = _windows(spec, protocol, n, trials, rng)
    covered = np.mean([_covered(protocol.decoder, cells, n) for cells in windows], axis=0)
    rare = _rare(protocol.decoder, n, len(covered))
    return Coverage(mean_of(covered, ~rare), covered[~rare].min(initial=1.0), mean_of(covered, rare))


def _windows(
    spec: CollectionSpec, protocol: LdpProtocol, n: int, trials: int, rng: np.random.Generator
) -> Iterator[Counts]:
    """Yield the cells of windows of n devices each."""
    at_once = max(_REPORTS_AT_ONCE // n, 1)
    for first in range(0, trials, at_once):
        windows = min(at_once, trials - first)
        held = [_hold(variable, n * windows, rng) for variable in spec.variables.values()]
        payloads = protocol.perturb(held, rng)
        for cells in protocol.mechanism.tally([payloads], np.arange(windows).repeat(n), windows):
            yield as_dense(cells)


def _shares(size: int) -> Floats:
    return population() if size == SIZE else np.array([0.3, 0.7])


def _hold(variable: Variable, n: int, rng: np.random.Generator) -> Held:
    if variable.kind.ordered:
        return Held(rng.beta(*_SHAPE, n), np.full(n, -1))
    if isinstance(variable.kind, Ranking):
        worths = np.log(_WORTHS) + rng.gumbel(size=(n, len(_WORTHS)))
        return Held(np.argsort(np.argsort(-worths, axis=1), axis=1), np.full(n, -1))
    names = variable.candidates
    values = rng.choice(size := len(names) or variable.size, n, p=_shares(size))
    if variable.kind.held > 1:  # sets of one item
        return Held(values[:, np.newaxis], np.full(n, -1))
    return Held(np.array(names, dtype=np.object_)[values] if names else values, np.full(n, -1))


def _covered(decoder: Decoder, cells: Counts, n: int) -> Mask:
    tables = decoder.tables(cells, n, decoder.known("empirical"))
    return np.concatenate([covers(table, truth) for table, truth in _truths(tables)])


def _truths(tables: Sequence[Table]) -> Iterator[tuple[Table, Floats]]:
    for table in tables:
        if table.name == TableName.SHARE and len(table.shape) > 1:  # attributes are independent here
            yield table, reduce(np.multiply.outer, map(_shares, table.shape)).ravel()
        elif table.name == TableName.SHARE:
            yield table, _shares(len(table.values))
        elif table.name == TableName.MEAN:
            yield table, np.array([_SHAPE[0] / sum(_SHAPE)])
        elif table.name == TableName.SCORE:
            yield table, (_WORTHS[:, np.newaxis] / (_WORTHS[:, np.newaxis] + _WORTHS)).sum(axis=1) - 0.5


def _rare(decoder: Decoder, n: int, size: int) -> Mask:
    if not isinstance(decoder, PureDecoder):
        return np.zeros(size, dtype=np.bool_)
    return n * decoder.channel.support_probability(_shares(size)) < RARE


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--users", type=int, nargs="+", default=USERS)
    parser.add_argument("--only", nargs="+", choices=SPECS, default=tuple(SPECS), metavar="MECHANISM")
    arguments = parser.parse_args()
    print_heading("mechanism", "n", *Coverage._fields)
    for name in arguments.only:
        for n in arguments.users:
            print_row(name, n, measure(name, n, arguments.trials))


if __name__ == "__main__":
    main()
