"""Protocols for the laws that hold for each: those of small specs, with devices of which the truth is known.

Each mechanism that a spec can name is in an example; ``tests/test_pieces_of_a_mechanism.py`` names one that is not.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from tests.build import spec
from tests.mechanisms.populations import Holders
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.records.decoder import MarginalsDecoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.strings.cohorts import STRING_SYMBOLS
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import Pairs, Sets, StringSets


@dataclass(frozen=True)
class Example:
    """A protocol, and devices that use it.

    Attributes:
        spec: The spec.
        protocol: Its protocol.
        truth: Shape (m,): what ``decoder.linear`` estimates for these devices.
    """

    spec: CollectionSpec
    protocol: LdpProtocol
    truth: Floats

    @cached_property
    def _holders(self) -> list[Holders]:
        return _holders(self.spec)

    def hold(self, rng: Generator, n: int) -> list[Held]:
        """Draw what n devices hold of each variable, i.i.d."""
        return [holders.hold(rng, n) for holders in self._holders]


def of_one_device(example: Example, rng: Generator) -> list[Held]:
    """Return what one device holds: of sets, one that it can report whole, so that it draws no items."""
    kind = next(iter(example.spec.variables.values())).kind
    while True:
        held = example.hold(rng, 1)
        if not isinstance(kind, Sets | StringSets):
            return held
        (row,) = held[0].values
        if isinstance(kind, StringSets):
            if sum(each is not None for each in row) <= kind.held:
                return held
        elif ((row[:, 0] if isinstance(kind, Pairs) else row) >= 0).sum() <= kind.held:
            return held


@cache
def examples() -> dict[str, Example]:
    """Return an example of each mechanism that a spec can name, and of its variants: the same to all tests."""
    return {name: example_of(spec(**keys)) for name, keys in specs().items()}


def specs() -> dict[str, dict[str, Any]]:
    """Return the keys of the spec of each example, to put in place of those of ``MINIMAL``.

    That of a mechanism which no registry has is not among them: one test names it, and others would fail with it.
    """
    return {name: keys for name, keys in _SPECS.items() if keys["mechanism"]["name"] in mechanism_names()}


def first_specs() -> dict[str, dict[str, Any]]:
    """Return the keys of the spec of the first example of each mechanism, by the name of the mechanism."""
    return {keys["mechanism"]["name"]: keys for keys in reversed(specs().values())}


def _holders(spec: CollectionSpec) -> list[Holders]:
    return [Holders(variable, unlisted=0.0) for variable in spec.variables.values()]


def example_of(spec: CollectionSpec) -> Example:
    """Return the protocol of a spec, with devices."""
    protocol, truths = build_protocol(spec), [holders.linear for holders in _holders(spec)]
    if isinstance(protocol.decoder, MarginalsDecoder):  # attributes are independent here
        tables = protocol.decoder.asked.tables
        truths = [reduce(np.multiply.outer, [truths[each] for each in table]).ravel() for table in tables]
    return Example(spec, protocol, np.concatenate(truths))


def alternatives(mechanism: Mechanism) -> list[Values]:
    """Group the inputs between which no report may tell: all of them, or those of each part of a record or design.

    Of mechanisms of several held symbols an input is a row.
    """
    if not isinstance(mechanism, Strata):
        return [_inputs(mechanism)]
    parts = zip(mechanism.first_symbols, mechanism.parts, strict=True)
    found = [first + inputs for first, part in parts for inputs in alternatives(part)]
    if mechanism.held == 1:
        return found
    return [each if each.ndim > 1 else np.repeat(each[:, np.newaxis], mechanism.held, axis=1) for each in found]


#: So many sets, or fewer, are all tried.
_FEW = 12


def _inputs(mechanism: Mechanism) -> Values:
    """All inputs, or some of all strings or sets, of which some are of no item, or of one, with dummies for others."""
    held = mechanism.held
    if held > 1 and math.comb(mechanism.size, held) <= _FEW:
        return np.array(list(itertools.combinations(range(mechanism.size), held)))
    if held > 1:
        first_dummy = mechanism.size - held
        starts = np.append(np.arange(8), first_dummy)
        one_item = np.append(0, first_dummy + np.arange(held - 1))
        return np.vstack([starts[:, np.newaxis] + np.arange(held), one_item])
    return np.arange(mechanism.size) if mechanism.size < STRING_SYMBOLS else np.arange(5) * (STRING_SYMBOLS // 5)


_VALUES, _NUMBER = {"size": 8}, {"number": {"low": -3.0, "high": 24.0}}
_RANKING = {"ranking": {"of": ["b", "a", "c", "d"]}}
_STRINGS = {"strings": {"longest": 12}}
_SPELLED = {"strings": {"longest": 12, "pieces": ["io", "kios"], "alphabet": "iko-sx"}}
_SET = {"set": {"of": {"size": 8}, "at_most": 3}}
_STRING_SET = {"set": {"of": _STRINGS, "at_most": 3}}
_SPELLED_SET = {"set": {"of": _SPELLED, "at_most": 2}}
_PAIRS = {"pairs": {"of": {"size": 8}, "at_most": 3, "low": -3.0, "high": 24.0}}
#: Candidates, the first of which devices hold; others are held by nobody.
_ASKED = {"candidates": ["kiosk", "", "日本", "a\n,b", "KIOSK", "kiosk ", "x" * 12, "\u202e"]}
_SENSITIVE = {"sensitive": [0, 1, 2]}
_HIDING = _SENSITIVE | {"tags": [{"name": "home"}]}
ZONES = str(Path(__file__).with_name("zones.csv"))
_ZONED = _SENSITIVE | {"tags": [{"name": "home", "zones": ZONES}]}
_NESTED = _SENSITIVE | {"tags": [{"name": "home", "zones": ZONES, "zone_epsilon": 0.8}]}


def _keys(name: str, domain: Mapping[str, Any] = _VALUES, epsilon: float = 1.0, **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": epsilon, **parameters}}


def _record(lasting: float | None = None, **attributes: tuple[Mapping[str, Any], Mapping[str, Any]]) -> dict[str, Any]:
    """A record of attributes, each with its domain and its mechanism."""
    domain = {"record": {attribute: domain for attribute, (domain, _) in attributes.items()}}
    of = {attribute: dict(part) for attribute, (_, part) in attributes.items()}
    return _keys("sample-one", domain, lasting_epsilon=lasting, of=of)


def _marginals(**parameters: Any) -> dict[str, Any]:
    """A record of three attributes, in views. So few values make few subsets, each of which many reports name."""
    return _keys("marginals", {"record": {"app": {"size": 3}, "own": {"size": 2}, "new": {"size": 2}}}, **parameters)


def _levels(name: str, lasting: float | None = None) -> dict[str, Any]:
    levels = {
        "strict": {"epsilon": 0.9, "share": 0.3, "lasting_epsilon": lasting},
        "open": {"epsilon": 1.0, "share": 0.7, "lasting_epsilon": lasting},
    }
    return {"domain": _VALUES, "mechanism": {"name": "levels", "levels": levels, "of": {"name": name}}}


_SPECS: dict[str, dict[str, Any]] = {
    "identity": {"domain": _VALUES, "mechanism": {"name": "identity"}},
    "rr": _keys("rr"),
    "warner": _keys("warner", {"size": 2}),
    "mangat": _keys("mangat", {"size": 2}) | {"sensitive": [0]},
    "urr": _keys("urr") | _SENSITIVE,
    "urr with a tag": _keys("urr") | _HIDING,
    "urr with a permanent response": _keys("urr", lasting_epsilon=3.0) | _HIDING,
    "urr with zones": _keys("urr") | _ZONED,
    "urr with nested zones": _keys("urr") | _NESTED,
    "rappor": _keys("rappor", theta=0.7),
    "sue": _keys("sue"),
    "oue": _keys("oue"),
    "urap": _keys("urap") | _SENSITIVE,
    "urap with a tag": _keys("urap") | _HIDING,
    "urap with a permanent response": _keys("urap", lasting_epsilon=3.0) | _HIDING,
    "urap with zones": _keys("urap") | _ZONED,
    "uoue": _keys("uoue") | _SENSITIVE,
    "uhr": _keys("uhr") | _SENSITIVE,
    "uhr with zones": _keys("uhr") | _ZONED,
    "uhr with a permanent response": _keys("uhr", lasting_epsilon=3.0) | _HIDING,
    "uss": _keys("uss", w=2) | {"sensitive": [0, 1, 2, 3]},
    "uss with a permanent response": _keys("uss", w=2, lasting_epsilon=3.0) | _HIDING,
    "ubd with a permanent response": _keys("ubd", w=3, lasting_epsilon=3.0) | _HIDING,
    "ubd of sensitive values": _keys("ubd", w=4),
    "ss": _keys("ss"),
    "set-ss": _keys("set-ss", _SET),
    "set-ss of two symbols": _keys("set-ss", _SET, w=2),
    "set-olh": _keys("set-olh", _SET),
    "set-olh of strings": _keys("set-olh", _STRING_SET, cohorts=64) | _ASKED,
    "set-olh of strings with sizes": _keys("set-olh", _STRING_SET, cohorts=64, sizes=0.1) | _ASKED,
    "set-ss of pairs": _keys("set-ss", _PAIRS),
    "set-ss with sizes": _keys("set-ss", _SET, sizes=0.1),
    "set-olh with sizes": _keys("set-olh", _SET, sizes=0.1),
    "set-ss of pairs with sizes": _keys("set-ss", _PAIRS, sizes=0.1),
    "set-ss with sizes and permanent responses": _keys("set-ss", _SET, sizes=0.1, lasting_epsilon=3.0),
    "set-ss with a permanent response": _keys("set-ss", _SET, lasting_epsilon=3.0),
    "set-ss of pairs with a permanent response": _keys("set-ss", _PAIRS, lasting_epsilon=3.0),
    "set-olh with a permanent response": _keys("set-olh", _SET, lasting_epsilon=3.0),
    "olh": _keys("olh"),
    "ss with a permanent response": _keys("ss", lasting_epsilon=3.0),
    "olh with a permanent response": _keys("olh", lasting_epsilon=3.0),
    "olh of two buckets": _keys("olh", buckets=2),
    "hrr": _keys("hrr"),
    "blh": _keys("blh", epsilon=2.0),
    "hrr with a permanent response": _keys("hrr", lasting_epsilon=3.0),
    "linear-olh": _keys("linear-olh"),
    "linear-olh with a permanent response": _keys("linear-olh", epsilon=0.8, lasting_epsilon=3.0),
    "pgr": _keys("pgr"),
    "pgr with a permanent response": _keys("pgr", epsilon=0.8, lasting_epsilon=3.0),
    "the": _keys("the"),
    "the with a permanent response": _keys("the", lasting_epsilon=3.0),
    "she": _keys("she"),
    "she with a permanent response": _keys("she", lasting_epsilon=3.0),
    "duchi": _keys("duchi", _NUMBER),
    "duchi at a large epsilon": _keys("duchi", _NUMBER, 6.0),
    "block": _keys("block", _NUMBER, bins=8),
    "geometric": _keys("geometric", _NUMBER, bins=4),
    "hybrid": _keys("hybrid", _NUMBER, bins=8),
    "hybrid with a permanent response": _keys("hybrid", _NUMBER, bins=8, lasting_epsilon=3.0),
    "block, piecewise": _keys("block", _NUMBER, 3.0, bins=8, width="piecewise"),
    "block, square wave": _keys("block", _NUMBER, 3.0, bins=8, width="square-wave"),
    "duchi with a permanent response": _keys("duchi", _NUMBER, lasting_epsilon=3.0),
    "block with a permanent response": _keys("block", _NUMBER, bins=8, lasting_epsilon=3.0),
    "bit-flip": _keys("bit-flip", bits=3),
    "bit-flip with a permanent response": _keys("bit-flip", bits=8, lasting_epsilon=3.0),
    "record of designs": _record(app=(_VALUES, {"name": "bit-flip", "bits": 4}), hours=(_NUMBER, {"name": "duchi"})),
    "tree": _keys("tree", branching=2),
    "tree of six levels": _keys("tree", {"size": 40}, branching=2),
    "tree with a permanent response": _keys("tree", branching=3, lasting_epsilon=3.0),
    "levels of bits and a tag": _levels("urap") | _HIDING,
    "levels of seeds": _levels("olh"),
    "levels with permanent responses": _levels("oue", lasting=3.0),
    "idue": {
        "domain": _VALUES,
        "mechanism": {"name": "idue", "groups": [{"values": [0], "epsilon": 0.9}, {"epsilon": 1.0}]},
    },
    "metric": _keys("metric"),
    "metric on a grid": _keys("metric", columns=4),
    "bloom": _keys("bloom", _STRINGS, 4.0, bits=32, cohorts=16) | _ASKED,
    "bloom with a permanent response": _keys(
        "bloom", _STRINGS, 3.0, bits=64, hashes=1, cohorts=8, theta=0.5, lasting_epsilon=6.0
    )
    | _ASKED,
    "cohort-olh": _keys("cohort-olh", _STRINGS, cohorts=64) | _ASKED,
    "cohort-olh with a permanent response": _keys(
        "cohort-olh", _STRINGS, 3.0, cohorts=8, buckets=40, lasting_epsilon=5.0
    )
    | _ASKED,
    "pairs": _keys("pairs", _RANKING),
    "pairs with a permanent response": _keys("pairs", _RANKING, lasting_epsilon=3.0),
    "prefixes": _keys("prefixes", _SPELLED, cohorts=64, step=2, depth=2) | _ASKED,
    "prefixes with a permanent response": _keys(
        "prefixes", _SPELLED, 3.0, cohorts=8, buckets=40, depth=2, lasting_epsilon=5.0
    )
    | _ASKED,
    "prefixes of sets": _keys("prefixes", _SPELLED_SET, cohorts=64, step=2, depth=2) | _ASKED,
    "record of symbols": _record(
        app=(_VALUES | _HIDING, {"name": "urr", "share": 0.7}), hours=(_NUMBER, {"name": "duchi", "share": 0.3})
    ),
    "record of bytes": _record(
        app=(_VALUES | _HIDING, {"name": "urr"}), hours=(_NUMBER, {"name": "duchi"}), place=(_VALUES, {"name": "olh"})
    ),
    "record with nested zones": _record(app=(_VALUES | _NESTED, {"name": "urr"}), hours=(_NUMBER, {"name": "duchi"})),
    "record with permanent responses": _record(
        3.0,
        app=(_VALUES | _HIDING, {"name": "urr"}),
        hours=(_NUMBER, {"name": "duchi"}),
        place=(_VALUES, {"name": "olh"}),
    ),
    "record of bits": _record(app=(_VALUES, {"name": "oue"}), hours=(_NUMBER, {"name": "block", "bins": 8})),
    "marginals": _marginals(views="pairs"),
    "marginals of all at once": _marginals(views=[["app", "own", "new"]]),
    "marginals with a permanent response": _marginals(views=[["own", "app"], ["new"]], lasting_epsilon=3.0),
    "record with strings": _record(
        app=(_VALUES, {"name": "oue"}), search=(_STRINGS | _ASKED, {"name": "cohort-olh", "cohorts": 32})
    ),
}
