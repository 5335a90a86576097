"""Zones from background knowledge alone: how to divide the values behind a tag, and how many zones pay off."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import NamedTuple, cast

import numpy as np

from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.zones.zoning import Zoning
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.variable import Variable
from uldp.schemas.specs.zones import MOST_ZONES, REST, Zones

#: The share of users behind each tag for which errors are forecast.
HIDDEN = 0.1


class Choice(NamedTuple):
    """Zones of a tag, and the expected l1 error of the shares of values before and after."""

    zones: Zones
    before: float
    after: float


def equal_zones(background: Floats, count: int) -> Zones:
    """Divide values into zones of about equal background mass, by falling mass; those without are in ``REST``."""
    order = np.argsort(-background, kind="stable")
    order = order[background[order] > 0]
    of_value = np.full(len(background), -1, dtype=np.int64)
    zone, left, mass = 0, 1.0, 0.0
    for value in order.tolist():
        of_value[value] = zone
        mass += background[value]
        # The zones that remain share the mass that remains; the tolerance is for the rounding of sums.
        if zone < count - 2 and mass >= left / (count - 1 - zone) - 1e-12:
            zone, left, mass = zone + 1, left - mass, 0.0
    used = int(of_value.max()) + 1
    labels = tuple(map(str, range(1, used + 1)))
    if (of_value < 0).any():
        return Zones((*labels, REST), np.where(of_value < 0, used, of_value))
    return Zones(labels, of_value)


def best_zones(variable: Variable, tag: int, users: int, epsilon: float | None) -> Choice:
    """Return the zones of a tag with the least ``expected_l1``, two or more; bots each if epsilon is None."""
    background = variable.background[tag]
    most = min(int(np.count_nonzero(background)) + 1, MOST_ZONES)
    before = expected_l1(with_zones(variable, tag, None, None), users)
    # Of two zones the last has no values, and is none, if all values have mass.
    choices = (zones for count in _counts(most) if len((zones := equal_zones(background, count)).labels) > 1)
    found = [Choice(zones, before, expected_l1(with_zones(variable, tag, zones, epsilon), users)) for zones in choices]
    return min(found, key=lambda choice: choice.after)


def _counts(most: int) -> Iterator[int]:
    """Yield 2, 3, 4, 6, 8, 12 and so on below a number, and this number."""
    numbers = (base << power for power in range(10) for base in (2, 3))
    yield from takewhile(lambda number: number < most, numbers)
    yield most


def with_zones(variable: Variable, tag: int, zones: Zones | None, epsilon: float | None) -> Variable:
    """Return a variable with other zones of one tag."""
    tags, each = list(variable.tags), list(variable.zones)
    tags[tag] = tags[tag].model_copy(update={"zones": None if zones is None else "", "zone_epsilon": epsilon})
    each[tag] = zones
    return replace(variable, tags=tags, zones=each)


def expected_l1(variable: Variable, users: int) -> float:
    """Forecast the l1 error of the shares of values, if each background is off by as much as its strength says.

    Visible users are spread evenly, and a share ``HIDDEN`` is behind each tag. The error of a share is sqrt(2/pi) times
    its standard error. A background of strength m has the variances of a Dirichlet distribution, pi (1 - pi) / (m + 1);
    those of unknown strength add nothing.
    """
    protocol, zoning = build_variable(variable), Zoning.of(variable)
    hidden = min(HIDDEN, 1 / (len(variable.tags) + 1))
    parts = [np.full(variable.size, (1 - hidden * len(variable.tags)) / variable.size)]
    for tag, zones in enumerate(variable.zones):
        parts.append(np.full(1, hidden) if zones is None else hidden * zoning.masses(tag))
    r, decoder = np.concatenate(parts), cast(PureDecoder, protocol.decoder)
    # Cells of bits count supports.
    law = decoder.mechanism.law(r)
    cells = np.rint(users * (decoder.channel.support_probability(r) if law is None else law)).astype(np.int64)
    pum, linear = decoder.tags_at(cells, users), decoder.linear(cells, users)
    known = ~np.isnan(pum.strength)
    squares = linear.values[variable.size :] ** 2 / (pum.strength + 1)
    background = pum.background[known]
    of_background = squares[known] @ (background * (1 - background))
    exact = replace(pum, strength=np.where(known, np.inf, np.nan))
    of_draws = exact.stderr(linear)
    return math.sqrt(2 / math.pi) * float(np.sqrt(of_draws**2 + of_background).sum())
