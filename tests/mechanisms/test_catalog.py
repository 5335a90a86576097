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
