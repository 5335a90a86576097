"""The truth of a simulation: what users hold, in the clear, and the tags behind which some users hide their values.

A truth file is a CSV file. The weight of a row is proportional to the number of users who hold what the row says. Its
header depends on the domain of the collection:

- values: ``value,tag,weight``. Users in rows with an empty tag do not hide their value. Or as background knowledge,
  ``value,weight``, if nobody hides a value.
- a number or a string: ``value,weight``.
- a set: ``items,weight``, where ``;`` stands between the items of a set. Or ``item,share``, if each item is held by a
  share of the users, independently of the others.
- keys with numbers: ``pairs,weight``, as ``key=number;key=number``, or ``key,value,share``.
- a ranking: ``ranking,weight``, where ``>`` stands between a candidate and the next worse one.
- a record: the name of each attribute, followed by ``NAME.tag`` if the attribute has tags; then ``weight``.

If reports have public attributes, ``by.NAME`` is a column for each of them, in front of ``weight``.

A value is an index into the domain, or a label if the domain has labels.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Self, cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.tags.pum import preprocess
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Kind, Value
from uldp.schemas.specs.mistakes import near, quote
from uldp.schemas.specs.tables import Table, read_weight, sum_weights
from uldp.schemas.specs.variable import Variable

#: The guide table of a distribution divides [0, 1) into this many equal parts. The number is much larger than the
#: number of cells, and the table still fits a cache.
_PARTS = 1 << 14
#: What a row says of one variable: a value, a number, a string, a set or a ranking, and the index of a tag.
_Field = tuple[Value, int]


@dataclass(frozen=True, eq=False)
class KnownShares:
    """The truth about the values of one variable."""

    shares: Floats  # shape (|X|,): the share of users who hold each value
    #: Shape (|X|,): the share of users who hold it and do not hide it; None if that is not known.
    visible: Floats | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """The joint distribution of what users hold, as m cells."""

    variables: Mapping[str, Variable]  # the variables of the spec, by name
    columns: tuple[Held, ...]  # what users of the m cells hold of each variable, and the position of each public value
    probabilities: Floats  # shape (m,): the share of users in each cell; the shares sum to 1

    @classmethod
    def load(cls, path: Path, spec: CollectionSpec) -> Self:
        """Read a truth file for the domain and the tags of a spec; RequestError at the first invalid line."""
        try:
            cells = list(_read_cells(path, spec))
            weights = np.array([weight for _, weight in cells])
            total = sum_weights(weights, "row")
        except ValueError as error:
            raise RequestError(f"{path}: {error}") from error
        columns = [
            _column(variable, [fields[index] for fields, _ in cells])
            for index, variable in enumerate(spec.variables.values())
        ]
        public = len(spec.by or ())
        for at in range(-public, 0):
            positions = np.array([fields[at][0] for fields, _ in cells], dtype=np.int64)
            columns.append(Held(positions, np.full(len(cells), -1)))
        return cls(spec.variables, tuple(columns), weights / total)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Held, ...]:
        """Draw n users i.i.d., and return what they hold of each variable."""
        cells = self._cells(rng.random(n))
        return tuple(Held(values.take(cells, axis=0), tags.take(cells)) for values, tags in self.columns)

    def _cells(self, draws: Floats) -> npt.NDArray[np.intp]:
        """Invert the distribution function at ``draws`` from [0, 1), by a table for most draws, else by a search."""
        ends, guide = self._guide
        parts = (draws * _PARTS).astype(np.intp)  # exact, because _PARTS is a power of two
        cells = guide.take(parts)
        searched = np.flatnonzero(cells < 0)
        cells[searched] = np.searchsorted(ends, draws[searched], side="right")
        return cells

    @cached_property
    def _guide(self) -> tuple[Floats, npt.NDArray[np.intp]]:
        """Return the distribution function, and the cell of each part of [0, 1), -1 if the part has several cells."""
        ends = np.cumsum(self.probabilities)
        ends /= ends[-1]
        bounds = np.searchsorted(ends, np.arange(_PARTS + 1) / _PARTS, side="right")
        return ends, np.where(bounds[:-1] == bounds[1:], bounds[:-1], -1)

    def distribution(self, attribute: str = "") -> Floats:
        """Return the distribution p, shape (|X|,), of values, hidden or not; of strings, candidates' shares."""
        values, _ = self._of(attribute)
        variable = self.variables[attribute]
        return variable.kind.shares(values, self.probabilities, variable.candidates)

    def intermediate(self, attribute: str = "") -> Floats:
        """Return the distribution r, shape (|Z|,), after each user's f_pre (eq. 20), over X and a bot for each tag."""
        (values, tags), variable = self._of(attribute), self.variables[attribute]
        symbols = preprocess(cast(Values, values), tags, variable.size)
        shares = np.bincount(symbols, self.probabilities, minlength=variable.size + len(variable.tags))
        return np.asarray(shares, dtype=np.float64)

    def shares(self, attribute: str = "") -> KnownShares:
        """Return the shares of the users' values, and the parts of them that are not hidden."""
        visible = self.intermediate(attribute)[: self.variables[attribute].size]
        return KnownShares(self.distribution(attribute), visible)

    def mean(self, attribute: str = "") -> float:
        """Return the mean of a number."""
        return float(self._of(attribute).values @ self.probabilities)

    def _of(self, attribute: str) -> Held:
        return self.columns[list(self.variables).index(attribute)]


def _column(variable: Variable, fields: list[_Field]) -> Held:
    values, tags = zip(*fields, strict=True) if fields else ((), ())
    hidden = np.array(tags, dtype=np.int64)
    return Held(variable.kind.column(values), hidden)


def _headers(spec: CollectionSpec) -> list[list[list[str]]]:
    """Return the headers that a file may have, the usual one first, as columns of each variable, public ones last."""
    public = [[f"by.{name}"] for name in spec.by or ()]
    if "" not in spec.variables:
        of_record = [[name, f"{name}.tag"] if variable.tags else [name] for name, variable in spec.variables.items()]
        return [[*of_record, *public]]
    kind = spec.variables[""].kind
    forms = [["value", "tag"], ["value"]] if kind.listed else [list(kind.columns)]
    return [[form, *public] for form in forms]


def _read_cells(path: Path, spec: CollectionSpec) -> Iterator[tuple[list[_Field], float]]:
    """Yield what each row says of each variable, and its weight; ValueError at the first invalid line."""
    known = {(*chain.from_iterable(columns), "weight"): columns for columns in _headers(spec)}
    kinds = [variable.kind for variable in spec.variables.values()]
    alone = [kind.alone for kind in kinds if kind.alone and spec.slices is None]
    table = Table.read(path, *known, *alone)
    if tuple(table.header) in alone:
        return (([(held, -1)], 1.0) for held in independent_users(table, kinds[0]))
    columns = known[tuple(table.header)]

    def parse(row: list[str]) -> tuple[list[_Field], float]:
        cells = iter(row)
        fields = [
            _parse_field([next(cells) for _ in of_variable], variable, spec)
            for of_variable, variable in zip(columns, spec.variables.values(), strict=False)
        ]
        if spec.slices is not None:
            fields += [(spec.slices.position(name, next(cells)), -1) for name in spec.slices.values]
        return fields, read_weight(next(cells))

    return table.each(parse)


def _parse_field(cells: list[str], variable: Variable, spec: CollectionSpec) -> _Field:
    """Return the value and the tag of one variable in a row; ValueError, without a line, if one is invalid."""
    try:
        value = variable.read(cells[0])
    except ValueError as error:
        raise RequestError(
            f"{error}; write a value of the domain of {spec.collection} version {spec.version}"
        ) from error
    tags = {"": -1} | {tag.name: index for index, tag in enumerate(variable.tags)}
    tag = cells[1] if len(cells) > 1 else ""
    if tag not in tags:
        known = near(tag, tags) or ", ".join(name for name in tags if name) or "it has none"
        raise RequestError(f"tag {quote(tag)} is not in the spec ({known}); correct it or leave it empty")
    return value, tags[tag]


#: The number of users from whom a simulation draws.
USERS = 1 << 16
# The choice of the users who hold an item; another seed would give another truth of the same shares.
_SEED = 5


def independent_users(table: Table, kind: Kind) -> list[Value]:
    """Return what each of ``USERS`` users holds, by a table of ``kind.alone``; ValueError at an invalid line.

    They stand for all: each item is held by as many of them as its share says, chosen at random and independently of
    others, because many items have no joint table. So shares are exact to 1/(2 ``USERS``).
    """
    rng, held = np.random.default_rng(_SEED), [list[Value]() for _ in range(USERS)]
    seen: set[Value] = set()
    for item, share in table.each(lambda row: _parsed(row, kind, seen)):
        for user in rng.choice(USERS, round(share * USERS), replace=False, shuffle=False).tolist():
            held[user].append(item)
    return [tuple(sorted(items, key=_index)) for items in held]


def _parsed(row: list[str], kind: Kind, seen: set[Value]) -> tuple[Value, float]:
    *texts, share_text = row
    found = kind.read("=".join(texts))
    if not (isinstance(found, tuple) and len(found) == 1):
        raise ValueError(f"write one {kind.alone[0]} in a row")
    try:
        share = float(share_text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"share {quote(share_text)} must be a number from 0 to 1")
    (item,) = found
    index = _index(item)
    if index in seen:
        raise ValueError(f"the {kind.alone[0]} is there twice; remove one row")
    seen.add(index)
    return item, share


def _index(item: Value) -> int | str:
    """Return the index of an item, a string, or the index of the key of a pair."""
    first = item[0] if isinstance(item, tuple) else item
    assert isinstance(first, int | str)
    return first
