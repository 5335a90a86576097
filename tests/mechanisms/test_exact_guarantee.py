"""The guarantee of every mechanism, exactly: all draws of its device are replayed, and probabilities are fractions.

A mechanism also reaches its epsilon: what is promised to users, and not spent, is paid for with variance.
"""

import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import ZONES, alternatives
from tests.mechanisms.replay import FLOATS, Law, laws
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.duchi.randomizer import Duchi
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.input_discriminative.randomizer import InputDiscriminativeEncoding
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism, Privacy, WithMemory
from uldp.mechanisms.randomizers.strata import Strata

_FOUR, _THREE, _TWO = {"size": 4}, {"size": 3}, {"size": 2}
_NUMBER = {"number": {"low": 0.0, "high": 1.0}}
_STRINGS = {"strings": {"longest": 4}}
_SPELLED = {"strings": {"longest": 4, "alphabet": "ab"}}
_ASKED = {"candidates": ["a", "b"]}
_SETS = {"set": {"of": {"size": 3}, "at_most": 2}}
_SOME = {"sensitive": [0, 1]}
_TAG = _SOME | {"tags": [{"name": "home"}]}
_ZONED = {"sensitive": [0, 1, 2], "tags": [{"name": "home", "zones": ZONES}]}
_NESTED = {"sensitive": [0, 1, 2], "tags": [{"name": "home", "zones": ZONES, "zone_epsilon": 0.8}]}
_EIGHT = {"size": 8}


def _keys(name: str, domain: Any = _FOUR, epsilon: float = 1.0, more: Any = None, **of: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": epsilon} | of} | (more or {})


def _levels(name: str, more: Any = None, **of: Any) -> dict[str, Any]:
    levels = {"strict": {"epsilon": 0.5, "share": 0.4} | of, "open": {"epsilon": 1.0, "share": 0.6} | of}
    return {"domain": _FOUR, "mechanism": {"name": "levels", "levels": levels, "of": {"name": name}}} | (more or {})


def _record(lasting: float | None = None, **attributes: Any) -> dict[str, Any]:
    domain = {"record": {name: domain for name, (domain, _) in attributes.items()}}
    of = {name: mechanism for name, (_, mechanism) in attributes.items()}
    return _keys("sample-one", domain, lasting_epsilon=lasting, of=of)


#: All mechanisms: ``tests/test_pieces_of_a_mechanism.py`` names others. Domains have few symbols, so that a report
#: has few draws.
SPECS: Mapping[str, dict[str, Any]] = {
    "set-ss with sizes": _keys("set-ss", _SETS, sizes=0.5),
    "set-olh with sizes": _keys("set-olh", _SETS, sizes=0.5),
    "identity": {"domain": _FOUR, "mechanism": {"name": "identity"}},
    "rr": _keys("rr"),
    "rr at a large epsilon": _keys("rr", epsilon=20.0),
    "rr with a permanent response": _keys("rr", lasting_epsilon=3.0),
    "warner": _keys("warner", _TWO),
    "mangat": _keys("mangat", _TWO, more={"sensitive": [0]}),
    "tree": _keys("tree", branching=2),
    "tree with a permanent response": _keys("tree", branching=2, lasting_epsilon=3.0),
    "urr": _keys("urr", more=_SOME),
    "urr with a tag": _keys("urr", more=_TAG),
    "urr with zones": _keys("urr", _EIGHT, more=_ZONED),
    "urr with nested zones": _keys("urr", _EIGHT, more=_NESTED),
    "urr with a permanent response": _keys("urr", more=_TAG, lasting_epsilon=3.0),
    "rappor": _keys("rappor", theta=0.7),
    "sue": _keys("sue"),
    "sue with a permanent response": _keys("sue", _THREE, lasting_epsilon=3.0),
    "oue": _keys("oue"),
    "oue with a permanent response": _keys("oue", _THREE, lasting_epsilon=3.0),
    "urap": _keys("urap", more=_SOME),
    "urap with a tag": _keys("urap", more=_TAG),
    "urap with a permanent response": _keys("urap", _THREE, more={"sensitive": [0, 1]}, lasting_epsilon=3.0),
    "uoue": _keys("uoue", more=_SOME),
    "uoue with a tag": _keys("uoue", more=_TAG),
    "ss": _keys("ss"),
    "ss with a permanent response": _keys("ss", lasting_epsilon=3.0),
    "set-ss": _keys("set-ss", _SETS, w=2),
    "set-olh": _keys("set-olh", _SETS, buckets=5),
    "set-olh with a permanent response": _keys("set-olh", _SETS, buckets=5, lasting_epsilon=3.0),
    "set-ss of one symbol": _keys("set-ss", _SETS, epsilon=2.0),
    "set-ss with a permanent response": _keys("set-ss", _SETS, w=2, lasting_epsilon=3.0),
    "uss": _keys("uss", more=_SOME),
    "uss of two": _keys("uss", {"size": 5}, more={"sensitive": [0, 1, 2, 3]}, w=2),
    "uss with a permanent response": _keys("uss", more=_TAG, lasting_epsilon=3.0),
    "uhr": _keys("uhr", more=_SOME),
    "uhr with a tag and a permanent response": _keys("uhr", more=_TAG, lasting_epsilon=3.0),
    "ubd": _keys("ubd", more=_SOME),
    "ubd with a tag and a permanent response": _keys("ubd", _EIGHT, more=_TAG, w=3, lasting_epsilon=3.0),
    "olh": _keys("olh"),
    "olh of two buckets": _keys("olh", buckets=2),
    "olh with a permanent response": _keys("olh", lasting_epsilon=3.0),
    "blh": _keys("blh"),
    "hrr": _keys("hrr"),
    "hrr with a permanent response": _keys("hrr", lasting_epsilon=3.0),
    "linear-olh": _keys("linear-olh"),
    "linear-olh with a permanent response": _keys("linear-olh", lasting_epsilon=3.0),
    "pgr": _keys("pgr"),
    "pgr with a permanent response": _keys("pgr", lasting_epsilon=3.0),
    "the": _keys("the"),
    "the with a permanent response": _keys("the", _THREE, lasting_epsilon=3.0),
    "she": _keys("she", _TWO, 20.0),
    "she with a permanent response": _keys("she", _TWO, 16.0, lasting_epsilon=20.0),
    "idue": {
        "domain": _FOUR,
        "mechanism": {"name": "idue", "groups": [{"values": [0, 1], "epsilon": 0.6}, {"epsilon": 1.0}]},
    },
    "bit-flip": _keys("bit-flip", bits=2),
    "bit-flip with a permanent response": _keys("bit-flip", bits=3, lasting_epsilon=3.0),
    "metric": _keys("metric"),
    "metric on a grid": _keys("metric", {"size": 9}, columns=3),
    "metric of two rows": _keys("metric", _EIGHT, 0.4, columns=4),
    "duchi": _keys("duchi", _NUMBER),
    "duchi with a permanent response": _keys("duchi", _NUMBER, lasting_epsilon=3.0),
    "block": _keys("block", _NUMBER, bins=4),
    "hybrid": _keys("hybrid", _NUMBER, bins=4),
    "hybrid with a permanent response": _keys("hybrid", _NUMBER, bins=4, lasting_epsilon=3.0),
    "block, piecewise": _keys("block", _NUMBER, 3.0, bins=8, width="piecewise"),
    "block, square wave": _keys("block", _NUMBER, 3.0, bins=8, width="square-wave"),
    "block with a permanent response": _keys("block", _NUMBER, bins=4, lasting_epsilon=3.0),
    "geometric": _keys("geometric", _NUMBER, bins=4),
    "geometric at a small epsilon": _keys("geometric", _NUMBER, 0.1, bins=2),
    "bloom": _keys("bloom", _STRINGS, 2.0, more=_ASKED, bits=8, hashes=2, cohorts=2),
    "set-olh of strings": _keys("set-olh", {"set": {"of": _STRINGS, "at_most": 2}}, cohorts=4, buckets=4),
    "prefixes of sets": _keys("prefixes", {"set": {"of": _SPELLED, "at_most": 2}}, cohorts=4, buckets=4, depth=1),
    "cohort-olh": _keys("cohort-olh", _STRINGS, more=_ASKED, cohorts=8),
    "cohort-olh with a permanent response": _keys(
        "cohort-olh", _STRINGS, more=_ASKED, cohorts=8, buckets=4, lasting_epsilon=3.0
    ),
    "prefixes": _keys("prefixes", _SPELLED, more=_ASKED, cohorts=8, depth=2),
    "prefixes with a permanent response": _keys(
        "prefixes", _SPELLED, more=_ASKED, cohorts=8, buckets=4, depth=1, lasting_epsilon=3.0
    ),
    "levels of symbols": _levels("urr", _TAG),
    "levels of bits": _levels("oue"),
    "levels with permanent responses": _levels("rr", lasting_epsilon=3.0),
    "pairs": _keys("pairs", {"ranking": {"of": ["a", "b", "c"]}}),
    "pairs with a permanent response": _keys("pairs", {"ranking": {"of": ["a", "b", "c"]}}, lasting_epsilon=3.0),
    "marginals": _keys(
        "marginals", {"record": {"app": {"size": 4}, "new": {"size": 2}, "own": {"size": 3}}}, views="pairs"
    ),
    "marginals with a permanent response": _keys(
        "marginals", {"record": {"app": {"size": 4}, "new": {"size": 2}}}, views=[["app", "new"]], lasting_epsilon=3.0
    ),
    "record": _record(
        app=(_FOUR | _TAG, {"name": "urr"}), place=(_THREE, {"name": "olh"}), hours=(_NUMBER, {"name": "duchi"})
    ),
    "record with permanent responses": _record(
        3.0, app=(_FOUR | _TAG, {"name": "urr"}), hours=(_NUMBER, {"name": "duchi"})
    ),
}
PRIVATE = [name for name in SPECS if name != "identity"]
#: Of numbers and strings, which have many, some symbols.
_MOST_SYMBOLS = 9
_DIGITS = 40
#: A probability that a device compares a float with is rounded to a float, which may cost or spare so many nats.
ROUNDED = Decimal("1e-14")
#: A mechanism leaves at most this of its epsilon, and what it loses where the probability of noise is rounded up to a
#: multiple of 2^-53.
SPARED = Decimal("1e-9")


def may_spare(epsilon: float) -> Decimal:
    return SPARED + Decimal(epsilon).exp() / FLOATS


@cache
def mechanism_of(name: str) -> Mechanism:
    return build_protocol(build.spec(**SPECS[name])).mechanism


def groups(mechanism: Mechanism) -> Iterator[tuple[list[Any], Mechanism]]:
    """Yield the symbols between which no report may tell, and the mechanism of these."""
    parts = mechanism.parts if isinstance(mechanism, Strata) else [mechanism]
    found = alternatives(mechanism)
    assert len(found) == len(parts)
    for symbols, part in zip(found, parts, strict=True):
        few = (
            symbols if symbols.ndim > 1 or len(symbols) <= _MOST_SYMBOLS else symbols[[0, 1, len(symbols) // 2, -2, -1]]
        )
        yield few.tolist(), part


def spent(of: list[Law], guarantee: Guarantee) -> dict[tuple[int, int], Decimal]:
    """Return by how many nats a protected report may tell each two of some symbols apart."""
    payloads = protected(of, guarantee)
    ratios = {
        (x, other): max(of[x][payload] / of[other][payload] for payload in payloads)
        for x, other in itertools.permutations(range(len(of)), 2)
    }
    with localcontext(prec=_DIGITS):
        return {pair: (Decimal(ratio.numerator) / ratio.denominator).ln() for pair, ratio in ratios.items()}


def protected(of: list[Law], guarantee: Guarantee) -> set[bytes]:
    """Return the payloads of Y_P; each other one is that of a single symbol, and only ULDP has such payloads."""
    payloads = set().union(*of)
    revealing = {payload for payload in payloads if not all(payload in law for law in of)}
    assert all(sum(payload in law for law in of) == 1 for payload in revealing)
    assert bool(revealing) == (guarantee.privacy is Privacy.ULDP)
    return payloads - revealing


def budget(part: Mechanism, x: Any, other: Any) -> Decimal:
    """Return the nats by which a report of a mechanism may tell two symbols apart."""
    if isinstance(part, MetricMechanism):
        return Decimal(part.epsilon) * Decimal(float(part.distances(np.array([x]))[0, other]))
    if isinstance(part, InputDiscriminativeEncoding):
        of_groups = [each["epsilon"] for each in SPECS["idue"]["mechanism"]["groups"]]
        return Decimal(of_groups[min(part.group[x], part.group[other])])
    assert part.guarantee.epsilon is not None
    return Decimal(part.guarantee.epsilon)


@pytest.mark.parametrize("name", PRIVATE)
def test_reports_tell_as_much_as_epsilon_and_no_more(name: str) -> None:
    mechanism = mechanism_of(name)
    for symbols, part in groups(mechanism):
        found = spent(laws(mechanism.perturb, symbols), part.guarantee)
        assert part.guarantee.epsilon is not None
        places = np.subtract(symbols, symbols[0]).tolist()
        spared = [budget(part, places[x], places[other]) - nats for (x, other), nats in found.items()]
        assert -ROUNDED <= min(spared) <= may_spare(part.guarantee.epsilon)


#: Mechanisms whose noise has a probability far below 2^-53, and so more than specs allow.
NEARLY_CERTAIN: Mapping[str, Mechanism] = {
    "rr": RandomizedResponse(np.arange(3) > 0, 50.0),
    "oue": UnaryEncoding(np.ones(3, dtype=np.bool_), 50.0, 1 - 2**-53),
    "olh": LocalHashing(3, 50.0, 4),
    "ss": SubsetSelection(4, 50.0),
    "hrr": HadamardResponse(3, 50.0),
    "linear-olh": LinearHashing(3, 50.0),
    "pgr": ProjectiveGeometryResponse(3, 50.0),
    "duchi": Duchi(700.0),
}


@pytest.mark.parametrize("name", NEARLY_CERTAIN)
def test_noise_is_never_rounded_away(name: str) -> None:
    mechanism = NEARLY_CERTAIN[name]
    protected, *others = laws(mechanism.perturb, [mechanism.size - 1, 1])
    assert all(protected.keys() == each.keys() for each in others)


def test_only_thresholds_promise_less_than_the_epsilon_of_the_spec() -> None:
    # Those of metric, idue and levels depend on the values, and on the level.
    promised = {
        name: mechanism_of(name).guarantee.epsilon for name in PRIVATE if not name.startswith(("metric", "idue"))
    }
    asked = {name: SPECS[name]["mechanism"].get("epsilon", 1.0) for name in promised}
    assert {name for name in promised if promised[name] != asked[name]} == {"the", "the with a permanent response"}
    assert promised["the"] == pytest.approx(0.896, abs=5e-4)


@pytest.mark.parametrize("name", [name for name in SPECS if "permanent response" in name])
def test_permanent_responses_tell_as_much_as_the_lasting_epsilon_and_no_more(name: str) -> None:
    mechanism = mechanism_of(name)
    assert isinstance(mechanism, WithMemory)
    for symbols, part in groups(mechanism):
        assert part.guarantee.lasting is not None
        found = spent(laws(mechanism.permanent, symbols), part.guarantee)
        assert -ROUNDED <= Decimal(part.guarantee.lasting) - max(found.values()) <= may_spare(part.guarantee.lasting)


def test_zones_behind_a_tag_differ_by_as_much_as_their_own_epsilon_and_no_more() -> None:
    mechanism = mechanism_of("urr with nested zones")
    found = spent(laws(mechanism.perturb, [*range(_EIGHT["size"], mechanism.size)]), Guarantee(Privacy.LDP, 0.8))
    assert -ROUNDED <= Decimal("0.8") - max(found.values()) <= SPARED


def test_a_report_without_privacy_is_the_symbol() -> None:
    of = laws(mechanism_of("identity").perturb, [0, 1, 2, 3])
    assert [*map(len, of)] == [1, 1, 1, 1]
    assert len(set().union(*of)) == 4
