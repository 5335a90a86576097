"""Which attributes devices report together: all pairs, all triples, or fewer and larger sets that hold all pairs.

Fewer views have more reports each, and larger ones say more of what they share, but each cell has more noise. Sets of
g + 1 of g^2 + g + 1 attributes that hold each pair once are the lines of a projective plane, and sets of g of g^2 those
of an affine plane, which is a projective one without a line (Qardaji, Yang & Li, "PriView: Practical Differentially
Private Release of Marginal Contingency Tables", SIGMOD 2014, for such covering designs).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

import numpy as np

from uldp.mechanisms.families.least_variance import least_variance
from uldp.mechanisms.families.subset_selection.randomizer import best_chosen
from uldp.mechanisms.pooling.interactions import Attributes, Interactions, subsets

#: Lines of the projective plane over g elements: this one, and those with all points moved by the same number, modulo
#: g^2 + g + 1 (Singer's difference sets).
_LINES = {2: (0, 1, 3), 3: (0, 1, 3, 9), 4: (0, 1, 4, 14, 16), 5: (0, 1, 3, 8, 12, 18)}
# Larger views must promise so much less error than pairs at equal shares. Of 13 records that promised .84 to 1.07,
# those below .95 had .75 to .99 of the error of pairs, and .68 to .95 of that of "auto"; others up to 1.10 and 1.05.
_WORTH = 0.95


def all_of(attributes: int, together: int) -> list[Attributes]:
    """Return all sets of so many attributes."""
    return list(combinations(range(attributes), together))


@cache
def best_views(sizes: tuple[int, ...], epsilon: float, most: int) -> tuple[Attributes, ...]:
    """Return the views, of so many cells, with the least error of tables of two; all pairs, or better ones."""
    found = all_of(len(sizes), 2)
    least = _WORTH * error(sizes, found, epsilon)
    for views in _coverings(len(sizes)):
        if sum(math.prod(sizes[attribute] for attribute in view) for view in views) > most:
            continue
        if (of_views := error(sizes, views, epsilon)) < least:
            found, least = views, of_views
    return tuple(found)


def _coverings(attributes: int) -> Iterator[list[Attributes]]:
    """Yield sets that hold each pair of attributes once."""
    for g, line in _LINES.items():
        points = g * g + g + 1
        lines = [sorted((point + moved) % points for point in line) for moved in range(points)]
        for dropped in ([], lines[0]):
            kept = [point for point in range(points) if point not in dropped][:attributes]
            if len(kept) == attributes and g < attributes:
                places = {point: place for place, point in enumerate(kept)}
                views = {tuple(sorted(places[point] for point in each if point in places)) for each in lines}
                yield sorted(view for view in views if len(view) > 1)


def error(sizes: Sequence[int], views: Sequence[Attributes], epsilon: float) -> float:
    """Return the mean squared error of the tables of two attributes of one report, up to a factor, at equal shares."""
    design = Interactions(sizes, views)
    weights = np.array([1 / (len(views) * noise(design.cells(view), epsilon)) for view in views])
    divisors = design.divisors(weights)
    pairs = [held for held in design.sets if len(held) == 2]
    return float(np.mean([squared_error(design, pair, divisors) for pair in pairs]))


def squared_error(design: Interactions, table: Attributes, divisors: Mapping[Attributes, float]) -> float:
    """Return the sum of the mean squared errors of the cells of a table of one report, at equal shares."""
    return sum(
        math.prod(design.sizes[attribute] - 1 for attribute in held) / design.rest(table, held) / divisors[held]
        for held in subsets(table)
        if held
    )


def noise(size: int, epsilon: float) -> float:
    """Return the variance of one report about so many symbols in a direction that sums to 0, at equal shares."""
    e, share = math.exp(epsilon), 1 / size
    w = 1 if least_variance(size, epsilon) == "rr" else best_chosen(size, epsilon)
    p = w * e / (w * e + size - w)
    q = (p * (w - 1) + (1 - p) * w) / (size - 1)
    m = q + (p - q) * share
    return m * (1 - m) / (p - q) ** 2 * size / (size - 1)
