"""Build the mechanism of a collection spec."""

from collections.abc import Callable, Mapping

import numpy as np

from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Mask
from uldp.schemas.collection import CollectionSpec, MechanismName, MechanismSpec


def build_mechanism(spec: CollectionSpec) -> Mechanism:
    """Build the common mechanism Q_cmn of a collection, over Z = X and then one bot for each tag.

    The bots are sensitive: Z_S = X_S and all bots (Murakami & Kawamoto, section 5.1).
    """
    sensitive = np.concatenate([spec.sensitive_mask, np.ones(len(spec.tags), dtype=np.bool_)])
    return _BUILDERS[spec.mechanism.name](sensitive, spec.mechanism)


def _randomized_response(sensitive: Mask, spec: MechanismSpec) -> Mechanism:
    return RandomizedResponse(sensitive, spec.epsilon)


def _unary_encoding(sensitive: Mask, spec: MechanismSpec) -> Mechanism:
    assert spec.epsilon is not None  # a spec cannot be built without it
    theta = _DEFAULT_THETA[spec.name](spec.epsilon) if spec.theta is None else spec.theta
    return UnaryEncoding(sensitive, spec.epsilon, theta)


# rappor is absent, because a spec with rappor always gives theta.
_DEFAULT_THETA: Mapping[MechanismName, Callable[[float], float]] = {
    "sue": sue_theta,
    "oue": lambda _: OUE_THETA,
    "urap": sue_theta,
    "uoue": lambda _: OUE_THETA,
}

# The names in the literature. The spec has checked the conditions that distinguish them (two values, one sensitive
# value, theta).
_BUILDERS: Mapping[MechanismName, Callable[[Mask, MechanismSpec], Mechanism]] = {
    "identity": _randomized_response,
    "rr": _randomized_response,
    "warner": _randomized_response,
    "mangat": _randomized_response,
    "urr": _randomized_response,
    "rappor": _unary_encoding,
    "sue": _unary_encoding,
    "oue": _unary_encoding,
    "urap": _unary_encoding,
    "uoue": _unary_encoding,
}
