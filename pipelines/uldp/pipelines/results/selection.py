"""A selection of windows and estimators of a results directory."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from uldp.schemas.errors import RequestError
from uldp.schemas.records import iso
from uldp.schemas.specs.mistakes import near, quote
from uldp.transforms.io.results.names import PaneFileName

#: Collection, version, and the window's start and end in milliseconds, as ``PaneHeader.key``.
Key = tuple[str, int, int, int]


def window_name(key: Key) -> str:
    """Name a window: ``places v1 from 2026-01-01T09:00:00Z``."""
    return f"{key[0]} v{key[1]} from {iso(key[2])}"


def require(kind: str, name: str | None, names: Collection[str]) -> None:
    """Raise RequestError unless a name is None or among ``names``."""
    if name is not None and name not in names:
        hint = near(name, names)
        choose = f"choose one of: {', '.join(sorted(names))}"
        raise RequestError(f"the results have no {kind} {quote(name)}; {f'{hint} {choose}' if hint else choose}")


@dataclass(frozen=True)
class Selection:
    """A selection of windows and estimators: a None attribute excludes nothing, and all other attributes must match."""

    collection: str | None = None  # the name of a collection; selects all of its versions
    since: int | None = None  # a time in milliseconds; selects windows that end after it
    until: int | None = None  # a time in milliseconds; selects windows that begin before it
    #: A number of windows; selects the windows of each collection that end last, published or not.
    last: int | None = None
    estimator: str | None = None  # the name of an estimator

    def in_time(self, start: int, end: int) -> bool:
        """Return whether a window, or one of those in this time, may begin and end as selected."""
        return (self.since is None or self.since < end) and (self.until is None or start < self.until)

    def may_have(self, file: PaneFileName) -> bool:
        """Return whether a file may have a selected pane, by its name."""
        of_collection = file.of is None or self.collection in (None, file.of[0])
        return of_collection and self.in_time(file.start, file.end) and self.has_estimator(file.estimator)

    def windows(self, keys: Iterable[Key]) -> set[Key]:
        """Return the selected windows."""
        chosen = {key for key in keys if self.collection in (None, key[0]) and self.in_time(*key[2:])}
        if self.last is None:
            return chosen
        last = {collection: found[-self.last :] for collection, found in _times(chosen).items()}
        return {key for key in chosen if (key[3], key[2]) in last[key[0]]}

    def at_most(self, keys: Iterable[Key], most: int) -> "Selection":
        """Return the selection with the largest ``last`` that leaves at most so many windows; 1 if none does."""
        chosen = self.windows(keys)
        if len(chosen) <= most:
            return self
        # The least ``last`` that selects each window.
        least = {(name, *time): n for name, of in _times(chosen).items() for n, time in enumerate(reversed(of), 1)}
        ordered = sorted(least[collection, end, start] for collection, _, start, end in chosen)
        return replace(self, last=max(ordered[most] - 1, 1))

    def has_estimator(self, name: str | None) -> bool:
        """Return whether an estimator is selected; None, for no or an unknown estimator, is always selected."""
        return name is None or self.estimator in (None, name)


def _times(keys: Iterable[Key]) -> dict[str, list[tuple[int, int]]]:
    """Return end and start of the windows of each collection, each once, in order."""
    times: dict[str, set[tuple[int, int]]] = {}
    for collection, _, start, end in keys:
        times.setdefault(collection, set()).add((end, start))
    return {collection: sorted(found) for collection, found in times.items()}


#: Selects all windows and estimators.
ALL = Selection()
