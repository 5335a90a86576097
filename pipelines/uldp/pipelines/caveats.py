"""Warnings of ``uldp check`` about valid specs that probably do not say what their author means."""

import math
from collections.abc import Iterator

import numpy as np

from uldp.mechanisms.catalog import build_mechanism
from uldp.schemas.collection import CollectionSpec
from uldp.schemas.durations import format_duration


def caveats(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each probable mistake in a spec, given the number of users who report in a window."""
    window = spec.window
    if window.early_every is not None and window.early_every > window.size:
        yield (
            f"window.early_every, {format_duration(window.early_every)}, is longer than the window, "
            f"{format_duration(window.size)}: no estimate comes early; make it shorter, or leave it out"
        )
    for tag in spec.tags:
        if _is_value(spec, tag.name):
            yield f"tag {tag.name} has the name of a value: nobody can tell them apart in results; rename the tag"
    mechanism = build_mechanism(spec)
    l1 = mechanism.channel.expected_l1(np.full(mechanism.size, 1 / mechanism.size), users)
    if l1 > 1:
        yield (
            f"the expected l1 error of the unbiased estimate is {l1:.3g} at n = {users:,}, where two distributions "
            f"differ by 2 at the most: take {_two_digits(users * l1**2):,} users or more in a window, fewer values, or "
            "a larger epsilon"
        )


def _is_value(spec: CollectionSpec, name: str) -> bool:
    try:
        spec.read_value(name)
    except ValueError:
        return False
    return True


def _two_digits(number: float) -> int:
    """Round a number up to two significant digits, and at least to a whole number.

    >>> _two_digits(10_401)
    11000
    """
    step = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / step) * step
