"""A lower bound on epsilon from reports of two values: near it, seldom above it, and above a promise that is broken."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from tests.mechanisms.protocols import ZONES
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.mechanisms.verification.privacy_loss import UNPROTECTED, Bound, Inputs, lower_bound, promised, told
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.schemas.arrays import Counts


def of_rr(values: int, epsilon: float, n: int, seed: int) -> float:
    """The bound from n reports of each of two values."""
    mechanism, rng, one = RandomizedResponse(np.ones(values, np.bool_), epsilon), default_rng(seed), np.eye(values)
    codes = [told(mechanism, one[0], one[1], mechanism.perturb(np.full(n, z), rng)).codes for z in (0, 1)]
    return lower_bound(codes[0], codes[1]).epsilon


@pytest.mark.parametrize(("values", "epsilon", "expected"), [(5, 1.0, 0.89), (50, 2.0, 1.73)])
def test_of_ten_thousand_reports_of_each_value_it_is_that_of_the_audit(
    values: int, epsilon: float, expected: float
) -> None:
    bounds = [of_rr(values, epsilon, 10_000, seed) for seed in range(20)]
    assert np.mean(bounds) == pytest.approx(expected, abs=0.06)


def test_it_is_above_the_truth_in_few_of_all_runs() -> None:
    bounds = np.array([of_rr(5, 1.0, 1_000, seed) for seed in range(400)])
    assert (bounds > 1.0).mean() <= 0.025
    assert bounds.mean() > 0.6


def test_what_nobody_promises_is_in_no_set() -> None:
    unprotected, protected = np.full((1, 400), UNPROTECTED), np.zeros((1, 400), np.int64)
    assert lower_bound(unprotected, unprotected).epsilon == 0
    assert lower_bound(unprotected, protected).epsilon > 3  # Pr(S | x) is 0, and not unknown
    assert lower_bound(protected, protected).epsilon == 0


_STRINGS = {"domain": {"strings": {"longest": 8}}, "candidates": ["kiosk"]}
_NUMBER = {"domain": {"number": {"low": 0, "high": 24}}}
_SOME = {"sensitive": [0, 1, 2], "tags": [{"name": "home"}]}
_RECORD = {
    "domain": {"record": {"app": {"size": 4}, "hours": _NUMBER["domain"]}},
    "mechanism": {"name": "sample-one", "of": {"app": {"name": "olh"}, "hours": {"name": "duchi"}}},
}
#: By name: keys of a spec, and two values.
FORMS: Mapping[str, tuple[Mapping[str, Any], Sequence[Sequence[Any]]]] = {
    "symbols": ({"mechanism": {"name": "rr"}}, [[1], [3]]),
    "symbols and a non-sensitive value": ({"mechanism": {"name": "urr"}, **_SOME}, [[1], [3]]),
    "blocks": ({"mechanism": {"name": "uhr"}, **_SOME}, [[1], [0]]),
    "bits": ({"mechanism": {"name": "oue"}}, [[1], [3]]),
    "bits of two kinds": ({"mechanism": {"name": "urap"}, **_SOME}, [[1], [4]]),
    "designs": ({"mechanism": {"name": "bit-flip", "bits": 3}}, [[1], [3]]),
    "sets": ({"mechanism": {"name": "ss"}}, [[1], [3]]),
    "sets of items": (
        {"mechanism": {"name": "set-ss"}, "domain": {"set": {"of": {"size": 6}, "at_most": 2}}},
        [[(0, 1)], [(0, 2)]],
    ),
    "hashes": ({"mechanism": {"name": "olh"}}, [[1], [3]]),
    "rows": ({"mechanism": {"name": "hrr"}}, [[1], [3]]),
    "histograms": ({"mechanism": {"name": "she"}}, [[1], [3]]),
    "distances": ({"mechanism": {"name": "metric"}}, [[0], [2]]),
    "one bit of a number": ({"mechanism": {"name": "duchi"}, **_NUMBER}, [[0.0], [24.0]]),
    "a grid point of a number": ({"mechanism": {"name": "geometric"}, **_NUMBER}, [[0.0], [24.0]]),
    "a block of a number": ({"mechanism": {"name": "block", "bins": 64}, **_NUMBER}, [[0.0], [24.0]]),
    "cohorts": ({"mechanism": {"name": "cohort-olh", "cohorts": 16}, **_STRINGS}, [["kiosk"], ["café"]]),
    "filters": ({"mechanism": {"name": "bloom", "cohorts": 16, "bits": 64}, **_STRINGS}, [["kiosk"], ["café"]]),
    "records": (_RECORD, [[1, 3.0], [2, 22.0]]),
}
#: Where half of the reports say nothing of the two values, or the client's own form depends on epsilon.
WEAK = {"hashes", "designs", "records", "a block of a number", "cohorts"}
N = 4_000


def protocol_of(name: str, epsilon: float) -> LdpProtocol:
    keys = FORMS[name][0]
    mechanism = keys["mechanism"] | {"epsilon": epsilon}
    return build_protocol(build.spec(**{"domain": {"size": 6}, **keys, "mechanism": mechanism}))


def inputs_of(protocol: LdpProtocol, values: Sequence[Any]) -> Inputs:
    held = columns(values, 1)
    if isinstance(protocol.mechanism, StringMechanism):
        return int(protocol.encoding.encode(held, default_rng(0))[0])
    return protocol.encoding.law(held, protocol.mechanism.size)


def columns(values: Sequence[Any], n: int) -> list[Held]:
    return [Held(np.full((n, *np.shape(value)), value), np.full(n, -1)) for value in values]


def bound(name: str, client: LdpProtocol) -> tuple[Bound, float]:
    """The bound from reports of a client, and the promise of the spec, whose epsilon is 1."""
    protocol, pair = protocol_of(name, 1.0), FORMS[name][1]
    one, other = (inputs_of(protocol, values) for values in pair)
    codes: list[Counts] = []
    for seed, values in enumerate(pair):
        payloads = client.perturb(columns(values, N), default_rng(seed))
        codes.append(told(protocol.mechanism, one, other, payloads).codes)
    promise = promised(protocol.mechanism, one, other, protocol.guarantee)
    assert promise is not None
    return lower_bound(codes[0], codes[1]), promise


@pytest.mark.parametrize("name", FORMS)
def test_a_right_client_keeps_its_promise_and_the_bound_is_near_it(name: str) -> None:
    found, promise = bound(name, protocol_of(name, 1.0))
    least = 0.2 if name in WEAK else 0.6
    assert least * promise < found.epsilon <= promise


@pytest.mark.parametrize("name", sorted(FORMS.keys() - WEAK))
def test_a_client_with_twice_the_epsilon_is_found(name: str) -> None:
    found, promise = bound(name, protocol_of(name, 2.2))
    assert found.epsilon > promise


@pytest.mark.parametrize("mechanism", ["urr", "uhr", "urap"])
def test_reports_that_name_a_value_break_no_promise(mechanism: str) -> None:
    # No sensitive value can produce them, and all others are alike for these two.
    protocol = build_protocol(build.spec(domain={"size": 6}, mechanism={"name": mechanism, "epsilon": 1.0}, **_SOME))
    one, other = np.eye(protocol.mechanism.size)[[3, 4]]
    payloads = [protocol.mechanism.perturb(np.full(N, z), default_rng(z)) for z in (3, 4)]
    codes = [told(protocol.mechanism, one, other, each).codes for each in payloads]
    assert (codes[0] == UNPROTECTED).mean() > 0.2
    assert lower_bound(codes[0], codes[1]).epsilon < 0.2


def test_the_promise_is_that_of_the_pair_where_pairs_differ() -> None:
    eye = np.eye(6)
    metric, rr = protocol_of("distances", 0.5), protocol_of("symbols", 0.5)
    for distance in (1, 2, 4):
        promise = promised(metric.mechanism, eye[0], eye[distance], metric.guarantee)
        assert promise is not None
        assert 0.3 * distance * 0.5 < promise <= distance * 0.5
    assert promised(rr.mechanism, eye[0], eye[4], rr.guarantee) == 0.5


def test_the_promise_of_groups_is_the_smaller_epsilon_and_reached_by_no_other_pair() -> None:
    mechanism = {"name": "idue", "groups": [{"values": [0, 1], "epsilon": 0.5}, {"epsilon": 2.0}]}
    protocol, eye = build_protocol(build.spec(domain={"size": 6}, mechanism=mechanism)), np.eye(6)
    of_pairs = [promised(protocol.mechanism, eye[x], eye[y], protocol.guarantee) for x, y in ((0, 1), (1, 4), (4, 5))]
    strict, mixed, loose = (promise or 0.0 for promise in of_pairs)
    assert 0.4 < strict <= 0.5
    assert 0.2 < mixed <= 0.5 + 1e-9
    assert 0.5 < loose <= 2.0


def test_the_promise_of_two_zones_behind_a_tag_is_that_of_zones() -> None:
    tag = {"name": "home", "zones": ZONES, "zone_epsilon": 0.8}
    keys = {"domain": {"size": 8}, "sensitive": [0, 1, 2], "tags": [tag], "mechanism": {"name": "urr", "epsilon": 2.0}}
    protocol = build_protocol(build.spec(**keys))
    assert isinstance(protocol.mechanism, NestedResponse)
    eye = np.eye(protocol.mechanism.size)
    for pair, least, most in (((8, 9), 0.5, 0.8), ((0, 8), 2.0, 2.0), ((0, 1), 2.0, 2.0), ((9, 9), 0.0, 0.0)):
        found = promised(protocol.mechanism, eye[pair[0]], eye[pair[1]], protocol.guarantee)
        assert found is not None
        assert least - 1e-9 <= found <= most + 1e-9
