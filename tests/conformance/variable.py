"""What the client of ``client`` draws by, and knows of a variable: the keys of its spec, and what follows from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    own_epsilon: float | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def of_sizes(self) -> float:
        """The epsilon by which sizes are chosen: under a permanent response, that of one report."""
        return self.epsilon if self.own_epsilon is None else self.own_epsilon

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
    def bots(self) -> list[tuple[str, str | None]]:
        """The tag and the zone of each symbol behind the values."""
        return [
            (tag["name"], zone)
            for tag in self.domain.get("tags", ())
            for zone in ([*dict.fromkeys(self._zones(tag).values()), "rest"] if "zones" in tag else [None])
        ]

    def _zones(self, tag: Mapping[str, str]) -> dict[int, str]:
        """The zone of each value that the file names, which has no quotes here."""
        rows = (line.split(",") for line in self.files[tag["zones"]].splitlines()[1:])
        return {int(value): zone for value, zone in rows}

    @property
    def size(self) -> int:
        return int(self.domain["size"]) + len(self.bots)

    @property
    def sensitive(self) -> list[int]:
        values = range(self.domain["size"])
        return [*sorted(self.domain.get("sensitive", values)), *range(len(values), self.size)]

    @property
    def others(self) -> list[int]:
        return [j for j in range(self.size) if j not in self.sensitive]

    @property
    def buckets(self) -> int:
        return int(self.mechanism.get("buckets", min(round(exp(self.of_sizes)) + 1, 2**16)))

    @property
    def columns(self) -> int:
        """V of uhr: the least power of 2 above v."""
        return 1 << len(self.sensitive).bit_length()

    @cached_property
    def design(self) -> tuple[int, list[int]]:
        """V and D of ubd."""
        w = self.mechanism.get("w", "auto")
        return designs.design(None if w == "auto" else w, len(self.sensitive), self.size, self.of_sizes)

    @property
    def points(self) -> int:
        g, m = self.printed["g"], self.printed["m"]
        return int((g**m - 1) // (g - 1))

    def encode(self, value: Any, tag: str | None, draws: Draws) -> Any:
        """The symbol of Z or of a string, those of a set, or the point; of bit-flip, and |Z| times the design."""
        if self.of_strings is not None:
            longest = self.of_strings["longest"]
            return self.string_set([symbol_of(text, longest) for text in value], draws)
        if "set" in self.domain:
            return self._set(value, draws)
        if "pairs" in self.domain:
            return self._pairs(value, draws)
        if isinstance(value, str):
            return symbol_of(value, self.domain["strings"]["longest"])
        if "number" not in self.domain:
            z = int(value) if tag is None else int(self.domain["size"]) + self.bots.index((tag, self._zone(value, tag)))
            return z + self.size * self._design_number(draws) if self.name == "bit-flip" else z
        low, high = self.domain["number"]["low"], self.domain["number"]["high"]
        of_others = {"duchi": 1 << 16, "geometric": 16}
        steps = self.mechanism.get("bins", of_others.get(self.name, 1024))
        bits = 52 - (steps - 1).bit_length()
        parts = round((min(max(value, low), high) - low) / (high - low) * (steps << bits))
        return int(parts + draws.below(1 << bits) >> bits)

    @property
    def of_strings(self) -> Any:
        """The strings of which sets are; None for others."""
        return self.domain.get("set", {}).get("of", {}).get("strings")

    def string_set(self, symbols: Iterable[int], draws: Draws) -> list[int]:
        """Up to l different symbols of a set of strings."""
        return sorted(set(self._kept(sorted(symbols), draws)))

    @property
    def held(self) -> int:
        """l of sets and of pairs."""
        return int(self._several["at_most"])

    @property
    def items(self) -> int:
        """k of sets, and twice that of pairs."""
        return int(self._several["of"]["size"]) * (2 if "pairs" in self.domain else 1)

    @property
    def _several(self) -> Any:
        return self.domain.get("set") or self.domain["pairs"]

    def _set(self, items: Iterable[int], draws: Draws) -> list[int]:
        kept = self._kept(sorted(items), draws)
        return self._padded(kept)

    def _pairs(self, pairs: Iterable[tuple[int, float]], draws: Draws) -> list[int]:
        kept = self._kept(sorted(pairs), draws)
        low, high = self._several["low"], self._several["high"]
        signs = [draws.below(1 << 52) for _ in range(self.held)]
        places = [round((min(max(number, low), high) - low) / (high - low) * (1 << 52)) for _, number in kept]
        return self._padded(
            [2 * key + (place + sign >> 52) for (key, _), place, sign in zip(kept, places, signs, strict=False)]
        )

    def _kept(self, left: list[Any], draws: Draws) -> list[Any]:
        drawn = [draws.below(2**32) for _ in range(self.held)]
        if (m := len(left)) > self.held:
            for i, u in enumerate(drawn):
                other = i + (u * (m - i) >> 32)
                left[i], left[other] = left[other], left[i]
        return left[: self.held]

    def _padded(self, kept: list[int]) -> list[int]:
        return sorted(kept + [self.items + j for j in range(self.held - len(kept))])

    def _zone(self, value: float, tag: str) -> str | None:
        own = next(each for each in self.domain["tags"] if each["name"] == tag)
        return self._zones(own).get(int(value), "rest") if "zones" in own else None

    def _design_number(self, draws: Draws) -> int:
        number, place = -(-self.size // int(self.mechanism["bits"])), draws.below(FLOATS)
        return next(c for c in range(number) if c == number - 1 or place < round(FLOATS * (c + 1) / number))
