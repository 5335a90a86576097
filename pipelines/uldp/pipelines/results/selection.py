"""Which windows of a results directory somebody wants to read, by the names of their folders wherever these say it.

A long history is not read to show its end: a folder is named ``<collection>-v<version>/<start>--<end>``.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from uldp.schemas.mistakes import near, quote

#: Collection, version, and the window's start and end in milliseconds, as ``SupportCounts.key``.
Key = tuple[str, int, int, int]

_FOLDER = re.compile(r"([a-z0-9-]{1,64})-v(\d{1,10})/(\d{8}T\d{6})(?:\.(\d{3}))?Z--(\d{8}T\d{6})(?:\.(\d{3}))?Z")


class SelectionError(ValueError):
    """A name in a selection that nothing has. The message lists those that there are."""


def require(kind: str, name: str | None, names: Collection[str]) -> None:
    """Check that a name is among ``names``, if there is one.

    Raises:
        SelectionError: if it is not.
    """
    if name is not None and name not in names:
        hint = near(name, names)
        choose = f"choose one of: {', '.join(sorted(names))}"
        raise SelectionError(f"no {kind} {quote(name)} is there; {f'{hint} {choose}' if hint else choose}")


def window_of(folder: str) -> Key | None:
    """Return the window that a folder is named after; None if its name is not of that form.

    >>> window_of("survey-v2/20260105T090000Z--20260105T100000.500Z")
    ('survey', 2, 1767603600000, 1767607200500)
    """
    match = _FOLDER.fullmatch(folder)
    if match is None:
        return None
    try:
        return match[1], int(match[2]), _moment(match[3], match[4]), _moment(match[5], match[6])
    except ValueError:  # a thirteenth month
        return None


def _moment(second: str, fraction: str | None) -> int:
    moment = datetime.strptime(second, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 + int(fraction or 0)


@dataclass(frozen=True)
class Selection:
    """Windows and estimators. What is None excludes nothing; all that is given must hold.

    Attributes:
        collection: The name of a collection, in all of its versions.
        since: A time in milliseconds; windows that end after it.
        last: How many windows of each collection, those that end last, whether an estimate is published of them or not.
        estimator: The name of an estimator.
    """

    collection: str | None = None
    since: int | None = None
    last: int | None = None
    estimator: str | None = None

    def windows(self, keys: Iterable[Key]) -> set[Key]:
        """Choose windows."""
        kept = {
            key for key in keys if self.collection in (None, key[0]) and (self.since is None or self.since < key[3])
        }
        if self.last is None:
            return kept
        times: dict[str, set[tuple[int, int]]] = {}
        for collection, _, start, end in kept:
            times.setdefault(collection, set()).add((end, start))
        last = {collection: sorted(found)[-self.last :] for collection, found in times.items()}
        return {key for key in kept if (key[3], key[2]) in last[key[0]]}

    def folders(self, folders: Iterable[str]) -> list[str]:
        """Choose folders, in order. One whose name says nothing is among them: only its files can say."""
        keys = {folder: window_of(folder) for folder in sorted(folders)}
        chosen = self.windows(key for key in keys.values() if key is not None)
        return [folder for folder, key in keys.items() if key is None or key in chosen]

    def has_estimator(self, name: str | None) -> bool:
        """Say whether an estimator is chosen; None stands for none, or for one that nobody knows yet."""
        return name is None or self.estimator in (None, name)


#: All of it.
ALL = Selection()
