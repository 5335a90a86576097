"""The kind of domain that is all rankings of some candidates."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import numpy as np
from pydantic import Field, field_validator

from uldp.schemas.arrays import Values as Indices
from uldp.schemas.specs.kinds.kind import Kind, Value
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.strict import Strict
from uldp.schemas.specs.values import refuse_repeated

#: Stands between the candidates of a ranking in a table.
BETTER = ">"


class Ranking(Strict, Kind):
    """All orders of the candidates of a vote, each the best first."""

    name: ClassVar = "ranking"
    form: ClassVar = "{of: [cat, dog]}"
    holds: ClassVar = "rankings"
    one: ClassVar = "ranking"
    unit: ClassVar = "candidates"
    heading: ClassVar = "Candidates"
    compared: ClassVar = "candidates"
    columns: ClassVar = ("ranking",)

    # A device draws one of k(k - 1)/2 pairs: with more candidates, few reports are about each.
    of: list[str] = Field(min_length=2, max_length=32)

    @field_validator("of")
    @classmethod
    def _are_names(cls, of: list[str]) -> list[str]:
        refuse_repeated(of)
        for label in of:
            if BETTER in label or label != label.strip() or not label:
                raise ValueError(f"{quote(label)} cannot be a candidate: it is empty, or has {BETTER} or outer spaces")
        return of

    @property
    def text(self) -> str:
        return f"a ranking of {len(self.of)} candidates"

    @property
    def extent(self) -> str:
        return f"{len(self.of)}"

    def read(self, text: str) -> tuple[int, ...]:
        labels = [label.strip() for label in text.split(BETTER)]
        if sorted(labels) != sorted(self.of):
            raise ValueError(
                f"{quote(text)} is no ranking of all candidates; write each once, the best first, as"
                f" {quote(BETTER.join(self.of))}"
            )
        return self._places([self.of.index(label) for label in labels])

    def check(self, value: object, attribute: str) -> tuple[int, ...]:
        """Return the place of each candidate, 0 for the best, of their indices, the best first."""
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
            raise TypeError(f"the value is a {type(value).__name__}, not a list of indices of candidates")
        if any(isinstance(index, bool) or not isinstance(index, int | np.integer) for index in value):
            raise TypeError("the ranking lists something else than indices of candidates")
        order = [int(index) for index in value]
        if sorted(order) != list(range(len(self.of))):
            raise ValueError(f"a ranking lists each of the {len(self.of)} candidates once, by its index")
        return self._places(order)

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        order = tuple(range(len(self.of)))
        return [order, order[::-1], order[1:] + order[:1]]

    def column(self, values: Sequence[Value]) -> Indices:
        """Return the places of the candidates, shape (n, candidates)."""
        return np.array(cast(Sequence[Sequence[int]], values), dtype=np.int64).reshape(-1, len(self.of))

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield "ranking.of", self.of

    def entries(self, size: int, *, whole: bool) -> Sequence[str] | None:
        return self.of if size == len(self.of) else None

    @staticmethod
    def _places(order: Sequence[int]) -> tuple[int, ...]:
        return tuple(np.argsort(order).tolist())
