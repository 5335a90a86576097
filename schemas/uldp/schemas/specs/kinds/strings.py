"""The kind of domain that is all strings of a length, of which nobody has a list."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from uldp.schemas.arrays import Floats, Texts
from uldp.schemas.specs.alphabet import read_pieces
from uldp.schemas.specs.candidates import read_candidates
from uldp.schemas.specs.kinds.kind import Column, Kind, Value
from uldp.schemas.specs.mistakes import prefixed
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.strict import Strict


class Strings(Strict, Kind):
    """All strings of up to ``longest`` bytes of UTF-8; no list of them is needed beforehand."""

    name: ClassVar = "strings"
    form: ClassVar = "{longest: 16}"
    holds: ClassVar = "strings"
    one: ClassVar = "string"
    unit: ClassVar = "candidates"
    has_law: ClassVar = False
    takes_candidates: ClassVar = True
    heading: ClassVar = "Strings"
    compared: ClassVar = "values"

    longest: int = Field(ge=1, le=1 << 16)
    #: The characters of strings, and longer pieces, for a mechanism that finds strings by their prefixes.
    alphabet: str | None = None
    pieces: list[str] | None = Field(default=None, min_length=1)
    pieces_file: str | None = None

    @property
    def spelled(self) -> bool:
        """Whether the spec says how strings are spelled."""
        return not (self.alphabet is None and self.pieces is None and self.pieces_file is None)

    def located(self, folder: SpecFolder) -> "Strings":
        if not self.spelled:
            return self
        with prefixed(f"{self.name}."):
            found = read_pieces(self.pieces, self.pieces_file, self.alphabet, self.longest, folder)
        return self.model_copy(update={"alphabet": None, "pieces": list(found), "pieces_file": None})

    @property
    def text(self) -> str:
        return f"strings of up to {self.longest:,} byte{'' if self.longest == 1 else 's'}"

    @property
    def extent(self) -> str:
        return f"any of up to {self.longest:,} bytes"

    def read(self, text: str) -> str:
        """Return a string; ValueError, with its length alone, if it is too long, or is no text of Unicode."""
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise ValueError("the string is not valid Unicode") from None
        if size > self.longest:
            raise ValueError(f"the string has {size:,} bytes of UTF-8, and the longest has {self.longest:,}")
        return text

    def check(self, value: object, attribute: str) -> str:
        if not isinstance(value, str):
            raise TypeError(f"the value is a {type(value).__name__}, not a string")
        return value

    def examples(self, size: int, candidates: Sequence[str]) -> list[object]:
        return [*candidates] or ["", "a"]

    def column(self, values: Sequence[Value]) -> Texts:
        return np.array(values, dtype=np.object_)

    def facts(self) -> Iterator[tuple[str, Any]]:
        yield "strings.longest", self.longest
        if self.spelled:  # other specs keep the digest that they had before there were any pieces
            yield "strings.pieces", self.pieces

    def without_files(self, domain: dict[str, Any]) -> None:
        keys = domain[self.name]
        if keys.pop("pieces_file", None) is not None:
            keys["pieces"] = self.pieces

    def shares(self, column: Column, weights: Floats, candidates: Sequence[str]) -> Floats:
        return np.array([weights[column == candidate].sum() for candidate in candidates])

    def candidates(
        self, listed: Sequence[str] | None, file: str | None, most: int, folder: SpecFolder
    ) -> Sequence[str]:
        return read_candidates(listed, file, self.read, most, folder)
