"""Groups of values with an epsilon of their own, for mechanisms under input-discriminative LDP."""

from collections.abc import Sequence

import numpy as np
from pydantic import Field

from uldp.schemas.specs.epsilon import Epsilon
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Values


class Group(Strict):
    """Some values and their privacy budget.

    Attributes:
        epsilon: The privacy budget of these values, in nats.
        values: Their labels or indices; None for all values that no other group names.
    """

    epsilon: Epsilon
    values: list[int | str] | None = Field(default=None, min_length=1)


def read_groups(groups: Sequence[Group], values: Values) -> list[Group]:
    """Return groups in the order of their epsilon that hold each value once, by its index.

    Raises:
        ValueError: if they do not divide the values, or two have the same epsilon. The message begins with the place.
    """
    owner = np.full(values.size, -1)
    for number, group in enumerate(groups):
        for value in group.values or ():
            try:
                index = values.index(value)
            except ValueError as error:
                raise ValueError(f"{number}.values: {error}") from error
            if owner[index] >= 0:
                raise ValueError(f"{number}.values: {quote(value)} occurs twice; each value is in one group")
            owner[index] = number
    others = [number for number, group in enumerate(groups) if group.values is None]
    if len(others) > 1:
        raise ValueError(f"{others[1]}: missing values; only one group holds the values that no other names")
    missing = np.flatnonzero(owner < 0)
    if others:
        owner[missing] = others[0]
    elif len(missing):
        name = quote(values.labels[missing[0]])
        raise ValueError(f"{name} is in no group; leave values out of one group, which then holds all others")
    if others and not len(missing):
        raise ValueError(f"{others[0]}: the other groups name all values, and none is left for this one; remove it")
    epsilons = [group.epsilon for group in groups]
    if len(set(epsilons)) < len(epsilons):
        raise ValueError("two groups have the same epsilon; merge them")
    order = sorted(range(len(groups)), key=lambda number: epsilons[number])
    return [Group(epsilon=epsilons[number], values=[*np.flatnonzero(owner == number).tolist()]) for number in order]
