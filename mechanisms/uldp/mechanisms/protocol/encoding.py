"""The step before the mechanism: what a device holds becomes a symbol of Z."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.mechanism import Guarantee, Randomness
from uldp.schemas.arrays import Floats, Symbols, Texts, Values


class Held(NamedTuple):
    """What n devices hold of one variable.

    Attributes:
        values: Shape (n,): indices of the domain's values, numbers as floats, or strings. Of sets, shape (n, j): the
            indices of items, with -1 behind them, or strings, with None behind them.
        tags: Shape (n,): the index of the tag behind which a user hides this value, -1 if the user does not hide it.
    """

    values: Values | Floats | Texts
    tags: Values


class Encoding(ABC):
    """Maps what devices hold to symbols of Z, on the device."""

    @abstractmethod
    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbol of each device, shape (n,); of sets its l symbols, shape (n, l).

        There is a column for each variable of the collection, in the order of the spec. Encodings that neither sample
        nor round draw nothing. ValueError, whose message names no value, if one is outside of its domain.
        """

    def device_form(self) -> DeviceForm:
        """Return what a device computes its symbol by; of a part of strata, given the symbol of ``base``.

        NotImplementedError if this encoding has no form.
        """
        raise NotImplementedError(f"{type(self).__name__} has no form in a table for devices")

    @property
    def base(self) -> "Encoding":
        """The encoding whose symbols ``of_base`` maps, which several parts may share. By default this one."""
        return self

    def of_base(self, symbols: Values) -> Values:
        """Map symbols of ``base`` to those of this encoding, shape (n,). It draws nothing, and refuses none."""
        return symbols

    def at(self, level: str | None) -> "Encoding":
        """Return the encoding of a device with a level of privacy; a ValueError says that there is no such level."""
        if level is not None:
            raise ValueError("the mechanism of the collection has no levels")
        return self

    @property
    def guarantee(self) -> Guarantee | None:
        """The promise to the user of this device, if it is another one than that of the mechanism."""
        return None

    def of_one(self, columns: Sequence[Held]) -> Symbols:
        """Return the symbol of one device, of which the columns have one row, or its l symbols; shape (1,) or (l,).

        An encoding that draws has its own method. It raises ValueError also if what the device reports is drawn.
        """
        return np.asarray(self.encode(columns, NoDraws()), dtype=np.int64).ravel()

    def of_each_part(self, columns: Sequence[Held]) -> Symbols:
        """Return ``of_one`` of each part of strata, shape (parts, l); without parts, that of this encoding."""
        return self.of_one(columns)[np.newaxis]

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return the distribution of the symbol of one device, of which the columns have one row; shape (size,).

        Of a set, 1 for each of its l symbols, else 0. An encoding that draws has its own method.
        """
        r = np.zeros(size)
        r[self.of_one(columns)] = 1.0
        return r


class NoDraws(Randomness):
    """Randomness for an encoding that draws nothing."""

    def random(self, size: int | tuple[int, ...]) -> Floats:
        raise NotImplementedError("an encoding that draws needs a law of its own")

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        raise NotImplementedError("an encoding that draws needs a law of its own")
