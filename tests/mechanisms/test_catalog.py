"""Each name of a mechanism against its published p and q."""

import math
from typing import Any

import numpy as np
import pytest

from tests.build import pure_mechanism, spec
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.specs.mechanism_family import names_where

EPSILON = 1.5
E = math.exp(EPSILON)
ROOT = math.sqrt(E)
TAKE_TAGS = names_where(lambda family: family.takes_tags).split(", ")
OF_BITS = {"rappor", "sue", "oue", "urap", "uoue"}


def build(name: str, **changes: Any) -> PureMechanism:
    """Build from the smallest spec of a mechanism; ``changes`` replace or add top-level keys."""
    mechanism: dict[str, Any] = {"name": name}
    if name != "identity":
        mechanism["epsilon"] = EPSILON
    if name == "rappor":
        mechanism["theta"] = 0.7
    base = {
        "domain": {"size": 2 if name in {"warner", "mangat"} else 5},
        "sensitive": {"mangat": [1]}.get(name, [1, 2] if name in TAKE_TAGS else "all"),
        "mechanism": mechanism,
    }
    return pure_mechanism(spec(**base | changes))


def rappor(theta: float) -> tuple[float, float]:
    return theta, theta / ((1 - theta) * E + theta)


def urap_non_sensitive(theta: float) -> tuple[float, float]:
    return 1 - ((1 - theta) * E + theta) / E, 0


SUE = ROOT / (ROOT + 1)

RANDOMIZED_RESPONSE = {"identity", "rr", "warner", "mangat", "urr"}

# (p, q) on sensitive and on non-sensitive symbols.
PUBLISHED: dict[str, dict[bool, tuple[float, float]]] = {
    "identity": {False: (1, 0)},
    "rr": {True: (E / (E + 4), 1 / (E + 4))},
    "warner": {True: (E / (E + 1), 1 / (E + 1))},
    "mangat": {True: (1, 1 / E), False: (1 - 1 / E, 0)},
    "urr": {True: (E / (E + 1), 1 / (E + 1)), False: (1 - 2 / (E + 1), 0)},
    "rappor": {True: rappor(0.7)},
    "sue": {True: rappor(SUE)},
    "oue": {True: (1 / 2, 1 / (E + 1))},
    "urap": {True: rappor(SUE), False: urap_non_sensitive(SUE)},
    "uoue": {True: (1 / 2, 1 / (E + 1)), False: urap_non_sensitive(1 / 2)},
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_name_has_its_published_channel(name: str) -> None:
    mechanism = build(name)
    p, q = np.array([PUBLISHED[name][sensitive] for sensitive in mechanism.sensitive.tolist()]).T
    np.testing.assert_allclose(mechanism.channel.p, p, rtol=1e-12)
    np.testing.assert_allclose(mechanism.channel.q, q, rtol=1e-12)
    assert set(mechanism.sensitive.tolist()) == PUBLISHED[name].keys()
    assert mechanism.guarantee.epsilon == (None if name == "identity" else EPSILON)
    assert isinstance(
        mechanism, UnaryEncoding if name in {"rappor", "sue", "oue", "urap", "uoue"} else RandomizedResponse
    )


def assert_same(one: PureMechanism, other: PureMechanism) -> None:
    assert type(one) is type(other)
    assert one.sensitive.tolist() == other.sensitive.tolist()
    assert one.channel.p.tolist() == other.channel.p.tolist()
    assert one.channel.q.tolist() == other.channel.q.tolist()
    values = np.arange(1000) % one.size
    reports = [mechanism.perturb(values, np.random.default_rng(1)).tolist() for mechanism in (one, other)]
    assert reports[0] == reports[1]


def test_special_cases_are_the_general_mechanism() -> None:
    two = {"domain": {"size": 2}}
    assert_same(build("warner"), build("rr", **two))
    assert_same(build("mangat"), build("urr", sensitive=[1], **two))
    assert_same(build("rr"), build("urr", sensitive="all"))
    assert_same(build("sue"), build("urap", sensitive="all"))
    assert_same(build("oue"), build("uoue", sensitive="all"))
    for name, theta in (("sue", SUE), ("oue", 0.5)):
        general = build("rappor", mechanism={"name": "rappor", "epsilon": EPSILON, "theta": theta})
        np.testing.assert_allclose(build(name).channel.p, general.channel.p, rtol=1e-15)
        np.testing.assert_allclose(build(name).channel.q, general.channel.q, rtol=1e-14)


def test_theta_of_the_spec_replaces_the_default() -> None:
    mechanism = build("urap", mechanism={"name": "urap", "epsilon": EPSILON, "theta": 0.6})
    assert mechanism.channel.p[1] == pytest.approx(0.6, rel=1e-15)


@pytest.mark.parametrize("name", TAKE_TAGS)
def test_tags_add_sensitive_bots_behind_the_values(name: str) -> None:
    mechanism = build(name, tags=[{"name": "home"}, {"name": "others"}])
    assert mechanism.size == 7
    assert mechanism.sensitive.tolist() == [False, True, True, False, False, True, True]
    q = mechanism.channel.q
    if name == "urr":
        assert q[5] == pytest.approx(1 / (4 + E - 1))
    assert q[5] == q[6] == q[1]
