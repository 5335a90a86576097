"""Input-discriminative unary encoding in specs."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.families.input_discriminative.randomizer import InputDiscriminativeEncoding
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.budget import Epsilon
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError
from uldp.schemas.specs.mistakes import prefixed, quote
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable


class Group(Strict):
    """Some values and their privacy budget.

    Attributes:
        epsilon: The privacy budget of these values, in nats.
        values: Their labels or indices; None for all values that no other group names.
    """

    epsilon: Epsilon
    values: list[int | str] | None = Field(default=None, min_length=1)


class InputDiscriminativeSpec(MechanismFamily):
    """Input-discriminative unary encoding: each group of values has an epsilon of its own.

    Attributes:
        groups: The groups, which divide the values.
    """

    title = "input-discriminative unary encoding (IDUE)"
    literature: ClassVar = {"idue": "ID-LDP MinID-LDP"}
    protects = "every value"
    several_epsilons = True
    not_in_levels = "its groups have their own epsilons; choose oue"
    not_ranked = "an epsilon for each group of values"
    refuses: ClassVar = {
        "epsilon": "idue has an epsilon for each of its groups; move epsilon there",
        "lasting_epsilon": (
            "a device keeps no response of idue, because each group would need a lasting epsilon of its own; remove"
            " lasting_epsilon, or choose oue, with the smallest epsilon"
        ),
    }
    lasting_epsilon: ClassVar[None] = None
    share: ClassVar[None] = None

    name: Literal["idue"]
    groups: list[Group] = Field(min_length=2)

    @property
    def epsilon(self) -> float:
        """The largest budget of a group, in nats."""
        return max(group.epsilon for group in self.groups)

    def fitted(self, values: Values, sensitive: Mask, tags: Sequence[Tag]) -> Self:
        try:
            return self.model_copy(update={"groups": read_groups(self.groups, values)})
        except ValueError as error:
            raise MisfitError("groups", str(error)) from error

    def uneven_noise(self, sensitive: Mask) -> str:
        return "have little noise"

    def protocol(self, variable: Variable) -> LdpProtocol:

        def build(sensitive: Mask, epsilon: float) -> InputDiscriminativeEncoding:
            group = np.zeros(len(sensitive), dtype=np.int64)
            for number, each in enumerate(self.groups):
                group[np.array(each.values)] = number  # ``fitted`` has made them indices
            return InputDiscriminativeEncoding([each.epsilon for each in self.groups], group)

        return of_shares(variable, self, build)


def read_groups(groups: Sequence[Group], values: Values) -> list[Group]:
    """Return groups by rising epsilon, of indices; ValueError, with the place, if they do not divide the values."""
    owner = np.full(values.size, -1)
    for number, group in enumerate(groups):
        for value in group.values or ():
            with prefixed(f"{number}.values: "):
                index = values.index(value)
                if owner[index] >= 0:
                    raise ValueError(f"{quote(value)} occurs twice; each value is in one group")
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
