"""The step before the mechanism: what a device holds becomes a symbol of Z."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from uldp.mechanisms.mechanism import Randomness
from uldp.schemas.arrays import Floats, Texts, Values


class Held(NamedTuple):
    """What n devices hold of one variable.

    Attributes:
        values: Shape (n,): indices of the domain's values, numbers as floats, or strings.
        tags: Shape (n,): the index of the tag behind which a user hides this value, -1 if the user does not hide it.
    """

    values: Values | Floats | Texts
    tags: Values


class Encoding(ABC):
    """Maps what devices hold to symbols of Z, on the device."""

    @abstractmethod
    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbol of each device, shape (n,).

        Args:
            columns: One for each variable of the collection, in the order of the spec.
            randomness: For encodings that sample or round; others draw nothing.

        Raises:
            ValueError: if a value is outside of its domain. The message names no value.
        """
