"""The query of a request: the options of the command line by their names, read with bounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from uldp.pipelines.options import time_ms
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import near, quote

#: Bounds on what one request may name: bytes are bounded by the server, which reads no longer line.
MOST_PAIRS, MOST_CHARACTERS = 100, 4_000

Value = TypeVar("Value")


class Query:
    """A query's names and values; RequestError for too many, an unknown name, or what nobody has asked for."""

    def __init__(self, pairs: Sequence[tuple[str, str]], known: Iterable[str]) -> None:
        if len(pairs) > MOST_PAIRS or sum(len(name) + len(value) for name, value in pairs) > MOST_CHARACTERS:
            raise RequestError(f"a query has at most {MOST_PAIRS} names and {MOST_CHARACTERS:,} characters")
        self._values: dict[str, list[str]] = {}
        names = sorted(known)
        for name, value in pairs:
            if name not in names:
                hint = near(name, names)
                raise RequestError(f"{quote(name)} is unknown here; {hint or 'write ' + ', '.join(names)}")
            if value:  # as an empty variable of a dashboard
                self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str]:
        """Return the values of a name."""
        return self._values.get(name, [])

    def pair(self, name: str) -> tuple[str, str] | None:
        """Return the two values of a name; None without one; RequestError for another number of them."""
        values = self.all(name)
        if len(values) not in (0, 2):
            raise RequestError(f"{name} takes two values, got {len(values)}: write {name}=A&{name}=B")
        return (values[0], values[1]) if values else None

    def one(self, name: str) -> str | None:
        """Return the value of a name; None without one; RequestError if there are several."""
        values = self.all(name)
        if len(values) > 1:
            raise RequestError(f"{name} takes one value, got {len(values)}")
        return values[0] if values else None

    def choice(self, name: str, choices: Sequence[str]) -> Any:
        """Return a value that is one of some; None without one; RequestError if it is another."""
        value = self.one(name)
        if value not in (None, *choices):
            raise RequestError(f"{name}={quote(str(value))}: write one of {', '.join(choices)}")
        return value

    def number(self, name: str) -> int | None:
        """Return a number of 1 or more; None without one; RequestError if it is none."""
        value = self.one(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) < 10 and int(value)):
            raise RequestError(f"{name}={quote(value)}: write a number of 1 or more")
        return int(value)

    def selection(self) -> Mapping[str, Any]:
        """Return the arguments of ``ResultsFolder.select``."""
        return {
            "collection": self.one("collection"),
            "since": self._read("since", time_ms),
            "until": self._read("until", time_ms),
            "last": self.number("last"),
            "estimator": self.one("estimator"),
        }

    def _read(self, name: str, read: Callable[[str], Value]) -> Value | None:
        value = self.one(name)
        try:
            return None if value is None else read(value)
        except (click.BadParameter, OverflowError) as error:
            raise RequestError(f"{name}: {getattr(error, 'message', error)}") from error


#: The names that choose windows.
SELECTION = ("collection", "since", "until", "last", "estimator")
