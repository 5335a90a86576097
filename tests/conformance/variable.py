"""What the client of ``client`` draws by, and knows of a variable: the keys of its spec, and what follows from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp
from typing import Any

from tests.conformance import designs
from tests.conformance.functions import symbol_of

FLOATS = 2**53


class Draws:
    """The draws of a file, in order."""

    def __init__(self, draws: Iterable[Sequence[int]]) -> None:
        self._draws = list(draws)

    def below(self, below: int) -> int:
        recorded, number = self._draws.pop(0)
        assert recorded == below
        return number

    def noise(self, probability: float) -> bool:
        return self.below(FLOATS) < ceil(FLOATS * probability)

    @property
    def left(self) -> int:
        return len(self._draws)


@dataclass
class Variable:
    """The keys of a domain, with its sensitive values and tags, and of its mechanism; what ``uldp check`` prints."""

    domain: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    printed: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.mechanism["name"])

    @property
    def epsilon(self) -> float:
        return float(self.mechanism["epsilon"])

    @property
    def e(self) -> float:
        return exp(self.epsilon)

    @property
    def tags(self) -> list[str]:
        return [tag["name"] for tag in self.domain.get("tags", ())]

    @property
    def size(self) -> int:
        return int(self.domain["size"]) + len(self.tags)

    @property
    def sensitive(self) -> list[int]:
        values = range(self.domain["size"])
        return [*sorted(self.domain.get("sensitive", values)), *range(len(values), self.size)]

    @property
    def others(self) -> list[int]:
        return [j for j in range(self.size) if j not in self.sensitive]

    @property
    def buckets(self) -> int:
        return int(self.mechanism.get("buckets", min(round(self.e) + 1, 2**16)))

    @property
    def columns(self) -> int:
        """V of uhr: the least power of 2 above v."""
        return 1 << len(self.sensitive).bit_length()

    @cached_property
    def design(self) -> tuple[int, list[int]]:
        """V and D of ubd."""
        w = self.mechanism.get("w", "auto")
        return designs.design(None if w == "auto" else w, len(self.sensitive), self.size, self.epsilon)

    @property
    def points(self) -> int:
        g, m = self.printed["g"], self.printed["m"]
        return int((g**m - 1) // (g - 1))

    def encode(self, value: float | str, tag: str | None, draws: Draws) -> int:
        """The symbol of Z or of a string, the point of the grid, or of bit-flip the symbol and |Z| times the design."""
        if isinstance(value, str):
            return symbol_of(value, self.domain["strings"]["longest"])
        if "number" not in self.domain:
            z = int(value) if tag is None else int(self.domain["size"]) + self.tags.index(tag)
            return z + self.size * self._design_number(draws) if self.name == "bit-flip" else z
        low, high = self.domain["number"]["low"], self.domain["number"]["high"]
        steps = 1 << 16 if self.name == "duchi" else self.mechanism.get("bins", 1024)
        bits = 52 - (steps - 1).bit_length()
        parts = round((min(max(value, low), high) - low) / (high - low) * (steps << bits))
        return int(parts + draws.below(1 << bits) >> bits)

    def _design_number(self, draws: Draws) -> int:
        number, place = -(-self.size // int(self.mechanism["bits"])), draws.below(FLOATS)
        return next(c for c in range(number) if c == number - 1 or place < round(FLOATS * (c + 1) / number))
