"""What a device computes by, as JSON: the numbers of one step, under the name of the rule that uses them.

``docs/device-table.md`` has the rule of each name. A probability is an integer up to 2^53: the device draws an integer
below 2^53, and the event happens if it is smaller. So a client needs no exponential, and no rounding.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from uldp.schemas.arrays import Floats, Mask

#: The key ``form`` names the rule; the others are its numbers, lists of these, or forms of further steps.
DeviceForm = dict[str, Any]

#: A device decides an event of a probability, or a choice, by a uniform integer below this: exactly to 2^-53.
RESOLUTION = 1 << 53


def threshold(probability: float) -> int:
    """Return the integer below which a draw makes an event happen; the probability is rounded up, as of noise.

    >>> threshold(0.5) == 2**52
    True
    """
    return math.ceil(float(probability) * RESOLUTION)


def thresholds(probabilities: Floats | Iterable[float]) -> int | list[int]:
    """Return the threshold of each probability, or one number for all if they are equal."""
    found = [threshold(each) for each in probabilities]
    return found[0] if len(set(found)) == 1 else found


def sensitive_symbols(sensitive: Mask) -> list[int] | None:
    """Return the symbols of Z_S in ascending order; None if they are all of Z."""
    return None if sensitive.all() else np.flatnonzero(sensitive).tolist()
