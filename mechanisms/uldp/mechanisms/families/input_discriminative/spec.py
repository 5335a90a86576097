"""Input-discriminative unary encoding in specs."""

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from uldp.mechanisms.assembly import of_shares
from uldp.mechanisms.families.input_discriminative.groups import Group, read_groups
from uldp.mechanisms.families.input_discriminative.randomizer import InputDiscriminativeEncoding
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Mask
from uldp.schemas.specs.domains import Tag
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError
from uldp.schemas.specs.values import Values
from uldp.schemas.specs.variable import Variable


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
        """Return this mechanism with groups that hold the values by their indices."""
        try:
            return self.model_copy(update={"groups": read_groups(self.groups, values)})
        except ValueError as error:
            raise MisfitError("groups", str(error)) from error

    def uneven_noise(self, sensitive: Mask) -> str:
        """See ``MechanismFamily``."""
        return "have little noise"

    def protocol(self, variable: Variable) -> LdpProtocol:
        """See ``MechanismFamily``."""

        def build(sensitive: Mask, epsilon: float) -> InputDiscriminativeEncoding:
            group = np.zeros(len(sensitive), dtype=np.int64)
            for number, each in enumerate(self.groups):
                group[np.array(each.values)] = number  # ``fitted`` has made them indices
            return InputDiscriminativeEncoding([each.epsilon for each in self.groups], group)

        return of_shares(variable, self, build)
