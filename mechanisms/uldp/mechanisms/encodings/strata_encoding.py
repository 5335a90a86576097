"""The encoding of strata: each device reports one part of what it holds, and says which.

Any variables of a collection may feed any part: a record has a part for each attribute, levels of privacy have parts
that all read the same value, and a part may read several attributes at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Guarantee, Randomness
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Floats, Symbols, Values


class StratumSource(NamedTuple):
    """What feeds a part of ``Strata``: an encoding, and the numbers of the variables that it reads, in its order."""

    encoding: Encoding
    columns: tuple[int, ...]

    def read(self, columns: Sequence[Held]) -> list[Held]:
        """Return the columns that the encoding reads."""
        return [columns[number] for number in self.columns]


class Choice:
    """How a device comes to its part: by default by the shares, and never by what its mechanism protects."""

    columns: tuple[int, ...] = ()  # the numbers of the variables that it reads

    def parts(self, columns: Sequence[Held], strata: Strata, randomness: Randomness) -> Symbols:
        """Return the number of the part of each device, shape (n,)."""
        return strata.draw(len(columns[0].values), randomness)

    def law(self, columns: Sequence[Held], strata: Strata) -> Floats:
        """Return the probability of each part for one device, of which the columns have one row; shape (S,)."""
        return strata.shares

    def device_form(self) -> DeviceForm:
        """Return what a device chooses its part by."""
        return {"form": "drawn"}

    def at(self, level: str | None) -> "Choice | None":
        """Return the choice of a device at a level, or raise ValueError; None if it has nothing to do with levels."""
        return None

    def guarantee(self, strata: Strata) -> Guarantee | None:
        """Return the promise to the user of this device, if the choice decides it."""
        return None


@dataclass(frozen=True)
class AtLevel(Choice):
    """The user has chosen the part, which is a level of privacy, for all reports of the device."""

    names: tuple[str, ...]
    level: int | None = None  # in a simulation, which draws it from the expected shares

    def parts(self, columns: Sequence[Held], strata: Strata, randomness: Randomness) -> Symbols:
        if self.level is None:
            return super().parts(columns, strata, randomness)
        return np.full(len(columns[0].values), self.level)

    def law(self, columns: Sequence[Held], strata: Strata) -> Floats:
        return strata.shares if self.level is None else np.eye(len(self.names))[self.level]

    def device_form(self) -> DeviceForm:
        return {"form": "level", "levels": list(self.names)}

    def at(self, level: str | None) -> Self:
        if level not in self.names:
            raise ValueError(f"a device needs one of the levels {', '.join(self.names)}")
        return replace(self, level=self.names.index(level))

    def guarantee(self, strata: Strata) -> Guarantee:
        return strata.guarantee if self.level is None else strata.parts[self.level].guarantee


class StrataEncoding(Encoding):
    """Encodes for each device one part of what it holds, for ``Strata`` with a source for each part.

    It encodes for all parts and discards all results but one. So neither its draws nor its errors depend on the part.
    Parts with the same ``Encoding.base`` of the same columns share its symbol, and its draws. What they make of it is
    computed for the part of each device alone, which its report names.
    """

    def __init__(self, sources: Sequence[StratumSource], strata: Strata, choice: Choice | None = None) -> None:
        if len(sources) != len(strata.parts):
            raise ValueError(f"there are {len(strata.parts)} parts, but {len(sources)} encodings")
        self._strata, self._choice = strata, Choice() if choice is None else choice
        self._sources = tuple(sources)
        numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._number = np.array(
            [numbers.setdefault((id(each.encoding.base), each.columns), len(numbers)) for each in sources]
        )
        first = np.unique(self._number, return_index=True)[1]
        #: Those that differ, of which each part has one.
        self._bases = [sources[index]._replace(encoding=sources[index].encoding.base) for index in first]
        self._maps = any(each.encoding.base is not each.encoding for each in sources)
        self._columns = 1 + max((*chain.from_iterable(each.columns for each in sources), *self._choice.columns))

    def at(self, level: str | None) -> "StrataEncoding":
        """See ``Encoding``. The level decides the part, or is for the parts."""
        choice = self._choice.at(level)
        if choice is not None:
            return StrataEncoding(self._sources, self._strata, choice)
        at_level = {id(each.encoding): each.encoding.at(level) for each in self._sources}
        sources = [each._replace(encoding=at_level[id(each.encoding)]) for each in self._sources]
        return StrataEncoding(sources, self._strata, self._choice)

    @property
    def guarantee(self) -> Guarantee | None:
        """See ``Encoding``: of its part, or of the only encoding, if one of these decides it."""
        of_part = self._choice.guarantee(self._strata)
        return self._sources[0].encoding.guarantee if of_part is None and len(self._sources) == 1 else of_part

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """See ``Encoding``. An error does not depend on the part."""
        if len(columns) != self._columns:
            raise ValueError(f"there are {len(columns)} columns, but the parts read {self._columns}")
        symbols = self._alike([each.encoding.encode(each.read(columns), randomness) for each in self._bases])
        part = self._choice.parts(columns, self._strata, randomness)
        own: Values = symbols[self._number[part], np.arange(len(part))]
        if self._maps and len(part):
            order = np.argsort(part, kind="stable")
            numbers, first = np.unique(part[order], return_index=True)
            for number, rows in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
                own[rows] = self._sources[number].encoding.of_base(own[rows])
        first_symbols = self._strata.first_symbols[part]
        return own + (first_symbols if own.ndim == 1 else first_symbols[:, np.newaxis])

    def _alike(self, symbols: Sequence[Values]) -> Values:
        """Return the symbols of all bases as an array; one symbol is repeated where other bases have several."""
        held = self._strata.held
        if held > 1:
            symbols = [each if each.ndim > 1 else np.repeat(each[:, np.newaxis], held, axis=1) for each in symbols]
        return np.stack(symbols)

    def device_form(self) -> DeviceForm:
        return {
            "form": "strata",
            "bases": [
                {"encoding": encoding.device_form(), "columns": list(columns)} for encoding, columns in self._bases
            ],
            "base": self._number.tolist(),
            "maps": [None if encoding.base is encoding else encoding.device_form() for encoding, _ in self._sources],
            "choice": self._choice.device_form(),
        }

    def of_each_part(self, columns: Sequence[Held]) -> Symbols:
        return np.array([source.encoding.of_one(source.read(columns)) for source in self._sources], dtype=np.int64)

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return the distributions of the symbols of all parts behind each other, times their probabilities."""
        laws: dict[tuple[int, tuple[int, ...], int], Floats] = {}
        found = []
        probabilities = self._choice.law(columns, self._strata)
        for source, part, probability in zip(self._sources, self._strata.parts, probabilities, strict=True):
            key = id(source.encoding), source.columns, part.size
            if key not in laws:
                laws[key] = source.encoding.law(source.read(columns), part.size)
            found.append(probability * laws[key])
        return np.concatenate(found)
