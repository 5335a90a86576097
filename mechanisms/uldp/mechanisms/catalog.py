"""Build the protocol of a collection spec."""

from collections.abc import Callable, Mapping

import numpy as np

from uldp.mechanisms.mechanism import PureMechanism
from uldp.mechanisms.protocol import LdpProtocol
from uldp.mechanisms.pum import Pum
from uldp.mechanisms.pure import PureDecoder
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.mechanisms.unary_encoding import OUE_THETA, UnaryEncoding, sue_theta
from uldp.schemas.arrays import Mask
from uldp.schemas.collection import CollectionSpec, MechanismName, MechanismSpec


def build_protocol(spec: CollectionSpec) -> LdpProtocol:
    """Build the encoding, mechanism and decoder of a collection.

    The common mechanism Q_cmn of PUM is over Z = X and then one bot for each tag. The bots are sensitive: Z_S = X_S and
    all bots (Murakami & Kawamoto, section 5.1).
    """
    pum = Pum.from_spec(spec)
    sensitive = np.concatenate([spec.sensitive_mask, np.ones(len(spec.tags), dtype=np.bool_)])
    mechanism = _BUILDERS[spec.mechanism.name](sensitive, spec.mechanism)
    return LdpProtocol(pum, mechanism, PureDecoder(mechanism.channel, pum))


def _randomized_response(sensitive: Mask, spec: MechanismSpec) -> RandomizedResponse:
    return RandomizedResponse(sensitive, spec.epsilon)


def _unary_encoding(sensitive: Mask, spec: MechanismSpec) -> UnaryEncoding:
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
_BUILDERS: Mapping[MechanismName, Callable[[Mask, MechanismSpec], PureMechanism]] = {
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
