"""Groups of values, as options of the command line name them."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from uldp.mechanisms.questions.shares import Shares, of_values
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import near, plain, quote
from uldp.schemas.specs.tables import Table


@dataclass(frozen=True)
class Wanted:
    """The groups that were asked for."""

    sums: Mapping[str, Sequence[str]]  # the names of the values of each group
    patterns: Sequence[str]  # patterns of the names of values; ``attribute=pattern`` is one of an attribute of a record

    @classmethod
    def read(cls, sums: Sequence[str], file: Path | None, patterns: Sequence[str]) -> "Wanted":
        """Read ``--sum``, ``--groups`` and ``--where``; RequestError if a file or a list of values cannot be read."""
        wanted: dict[str, list[str]] = {}
        for text in sums:
            try:
                wanted[text] = next(csv.reader([text], strict=True))
            except (csv.Error, StopIteration) as error:
                raise RequestError(f"--sum {quote(text)}: write values with commas between them: A,B,C") from error
        if file is not None:
            try:
                for value, group in Table.read(file, ["value", "group"]).each(lambda row: (row[0], row[1])):
                    wanted.setdefault(group, []).append(value)
            except ValueError as error:
                raise RequestError(f"--groups {plain(str(file))}: {error}") from error
        return cls(wanted, patterns)

    def __bool__(self) -> bool:
        return bool(self.sums or self.patterns)

    def of(self, shares: Sequence[Shares]) -> Iterator[tuple[Shares, dict[str, list[int]]]]:
        """Yield variables that have groups, with the positions of their values; RequestError if none has one."""
        found: list[tuple[Shares, dict[str, list[int]]]] = [(each, {}) for each in of_values(shares)]
        for name, values in self.sums.items():
            mine = [pair for pair in found if all(value in pair[0].positions for value in values)]
            if not mine:
                raise RequestError(_unknown(values, shares))
            if len(mine) > 1:
                raise RequestError(f"{quote(name)} is of several attributes; write --where ATTRIBUTE=PATTERN instead")
            mine[0][1][name] = sorted({mine[0][0].positions[value] for value in values})
        for pattern in self.patterns:
            matches = [(groups, positions) for each, groups in found if (positions := _matching(each, pattern))]
            if not matches:
                raise RequestError(f"--where {quote(pattern)} matches no value; write a name, or * for any characters")
            for groups, positions in matches:
                groups[pattern] = positions
        yield from ((each, groups) for each, groups in found if groups)


def _unknown(values: Sequence[str], shares: Sequence[Shares]) -> str:
    known = {label for each in shares for label in each.labels}
    unknown = next((value for value in values if value not in known), None)
    if unknown is None:
        return f"{quote(','.join(values))}: the values are of several attributes; sum those of one"
    hint = near(unknown, known)
    return f"no value {quote(unknown)}{f'; {hint}' if hint else ''}"


def _matching(shares: Shares, pattern: str) -> list[int]:
    """Return the positions of values that a pattern matches; without wildcards, by name or a whole part of it."""
    attribute, separator, rest = pattern.partition("=")
    if shares.attribute:
        if not separator or attribute != shares.attribute:
            return []
        pattern = rest
    if re.search(r"[*?\[]", pattern):
        return [at for at, label in enumerate(shares.labels) if fnmatchcase(label, pattern)]
    part = re.compile(rf"(?<![\w-]){re.escape(pattern)}(?![\w-])")
    return [at for at, label in enumerate(shares.labels) if part.search(label)]
