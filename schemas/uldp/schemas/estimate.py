"""The published estimate of a window: its header, and a list of tables. In Avro, their numbers are packed bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from uldp.schemas.arrays import Floats
from uldp.schemas.pane import PaneHeader
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.slices import slice_of
from uldp.schemas.table import ARRAYS, Basis, Table, TableName

#: The fields of an estimate, and of a table, that are the same in Avro.
_AS_THEY_ARE = ("mechanism", "epsilon", "lasting_epsilon", "estimator", "assume_forgers")
_OF_TABLE = ("level", "n", "whole", "simultaneous")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(PaneHeader):
    """The estimate of one window by one estimator; see ``estimate.avsc`` for each field.

    The ``Statistic`` of the same key and revision has the cells that it was computed from.
    """

    mechanism: str
    epsilon: float | None
    lasting_epsilon: float | None = None
    budget: Budget | None = None
    shuffle: tuple[Shuffled, ...] = ()
    estimator: str
    assume_forgers: float | None = None
    tables: tuple[Table, ...]

    def __eq__(self, other: object) -> bool:
        return self.to_avro() == other.to_avro() if isinstance(other, Estimate) else NotImplemented

    def table(self, name: TableName, of: tuple[str, ...] = ()) -> Table | None:
        """Return the table of a quantity, of the given attributes if the collection has records; None without one."""
        for table in self.tables:  # a text asks a dozen times, so no generator
            if table.name == name and table.of == of:
                return table
        return None

    def shuffled(self, of: tuple[str, ...] = ()) -> Shuffled | None:
        """Return what those who see only tables are promised of the users behind the tables ``of``; None if nothing.

        If several levels or slices are meant, each with its own promise, it is the weakest one.
        """
        mine = [each for each in self.shuffle if each.of[: len(of)] == of]
        # Of a record whose devices report several attributes, the promise is about all of them.
        mine = mine or [each for each in self.shuffle if each.of == slice_of(of)]
        return max(mine, key=lambda each: each.epsilon, default=None)

    def to_avro(self) -> dict[str, Any]:
        return self.described() | {"tables": [_table_to_avro(table) for table in self.tables]}

    def described(self) -> dict[str, Any]:
        """Return the value that ``estimate.avsc`` describes, without the tables."""
        return PaneHeader.to_avro(self) | {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            "budget": None if self.budget is None else self.budget.to_avro(),
            "shuffle": [each.to_avro() for each in self.shuffle],
        }

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read what ``to_avro`` returned; ValueError if a table has an unknown name or basis, or bytes of no floats."""
        return cls(
            **cls.header_from_avro(value),
            **{name: value[name] for name in _AS_THEY_ARE},
            budget=None if value["budget"] is None else Budget.from_avro(value["budget"]),
            shuffle=tuple(map(Shuffled.from_avro, value["shuffle"])),
            tables=tuple(map(_table_from_avro, value["tables"])),
        )


def _table_to_avro(table: Table) -> dict[str, Any]:
    return described_table(table) | {name: _to_bytes(getattr(table, name)) for name in ARRAYS}


def described_table(table: Table) -> dict[str, Any]:
    """Return the fields of a table that ``estimate.avsc`` describes, without its arrays."""
    return {
        "name": table.name.value,
        "of": list(table.of),
        "shape": list(table.shape),
        "keys": None if table.keys is None else list(table.keys),
        "level": table.level,
        "n": table.n,
        "whole": table.whole,
        "basis": table.basis.value,
        "simultaneous": table.simultaneous,
    }


def _to_bytes(numbers: Floats | None) -> bytes | None:
    return None if numbers is None else numbers.astype("<f8", copy=False).tobytes()


def _table_from_avro(value: Mapping[str, Any]) -> Table:
    arrays = {name: _from_bytes(value[name]) for name in ARRAYS if value[name] is not None}
    as_they_are = {name: value[name] for name in _OF_TABLE}
    return Table(
        name=TableName(value["name"]),
        of=tuple(value["of"]),
        shape=tuple(value["shape"]),
        keys=None if value["keys"] is None else tuple(value["keys"]),
        basis=Basis(value["basis"]),
        **(as_they_are | arrays),
    )


def _from_bytes(packed: bytes) -> Floats:
    return np.frombuffer(packed, "<f8").astype(np.float64)
