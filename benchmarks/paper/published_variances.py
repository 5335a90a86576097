"""The variances of protocols as Wang et al. print them (USENIX Security 2017, section 4): Var*, for one user.

Var* is that of a value that few users hold, so that the term with its share is left out (their section 3). The number
of buckets of OLH is not rounded there, and the noise of SHE is Laplace's, where this project draws integers.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np


def _direct(epsilon: float, size: int) -> float:
    return (size - 2 + math.exp(epsilon)) / math.expm1(epsilon) ** 2


def _summation(epsilon: float, size: int) -> float:
    return 8 / epsilon**2


def _thresholding(epsilon: float, size: int) -> float:
    theta = np.linspace(0.5, 1, 100_001)
    set_by_noise, set_by_value = np.exp(-epsilon * theta / 2) / 2, 1 - np.exp(epsilon * (theta - 1) / 2) / 2
    variance = set_by_noise * (1 - set_by_noise) / (set_by_value - set_by_noise) ** 2
    return float(variance.min())


def _symmetric(epsilon: float, size: int) -> float:
    return math.exp(epsilon / 2) / math.expm1(epsilon / 2) ** 2


def _optimized(epsilon: float, size: int) -> float:
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


def _binary_hashing(epsilon: float, size: int) -> float:
    return ((math.exp(epsilon) + 1) / math.expm1(epsilon)) ** 2


#: Var* by the name of the protocol, of epsilon and the number of values.
PUBLISHED: Mapping[str, Callable[[float, int], float]] = {
    "DE": _direct,
    "SHE": _summation,
    "THE": _thresholding,
    "SUE": _symmetric,
    "OUE": _optimized,
    "BLH": _binary_hashing,
    "OLH": _optimized,
}
