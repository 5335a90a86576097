"""Mechanisms and distributions of the tests of plausibility."""

import numpy as np

from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Floats, Mask

K = 8


def mask(v: int, size: int = K) -> Mask:
    """The first v symbols are sensitive."""
    return np.arange(size) < v


MECHANISMS: dict[str, PureMechanism] = {
    "rr": RandomizedResponse(mask(K), 1.0),
    "urr": RandomizedResponse(mask(5), 1.0),
    "sue": UnaryEncoding(mask(K), 1.0, sue_theta(1.0)),
    "oue": UnaryEncoding(mask(K), 1.0, OUE_THETA),
    "urap": UnaryEncoding(mask(5), 1.0, sue_theta(1.0)),
    "uoue": UnaryEncoding(mask(5), 1.0, OUE_THETA),
}
SYMBOLS, BITS = ("rr", "urr"), ("sue", "oue", "urap", "uoue")
ZIPF = 1 / np.arange(1, K + 1) ** 2
DISTRIBUTIONS: dict[str, Floats] = {
    "uniform": np.full(K, 1 / K),
    "one sensitive": np.eye(K)[0],
    "one non-sensitive": np.eye(K)[-1],
    "zipf": ZIPF / ZIPF.sum(),
    "every other": np.tile([0.0, 0.25], K // 2),
}
