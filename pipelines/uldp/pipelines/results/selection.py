"""Select windows of a results directory, by the names of their folders where the names suffice.

A folder of one window is ``<collection>-v<version>/<start>--<end>``, one of several windows of a collection is
``<collection>-v<version>/shared``, and one of several collections is ``all/<start>--<end>``. So a reader can show the
end of a long history without opening all of its files.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import COLLECTION, CollectionKey
from uldp.schemas.specs.mistakes import near, quote
from uldp.transforms.io.results.names import ALL_COLLECTIONS, SHARED

#: Collection, version, and the window's start and end in milliseconds, as ``PaneHeader.key``.
Key = tuple[str, int, int, int]

#: Start and end of a time, in milliseconds.
Span = tuple[int, int]

_SPAN = r"(\d{8}T\d{6})(?:\.(\d{3}))?Z--(\d{8}T\d{6})(?:\.(\d{3}))?Z"
_VERSION = rf"({COLLECTION})-v(\d{{1,10}})"
_FOLDER = re.compile(rf"{_VERSION}/{_SPAN}")
_SHARED = re.compile(rf"{_VERSION}/{SHARED}")
_OF_ALL = re.compile(rf"{ALL_COLLECTIONS}/{_SPAN}")


def require(kind: str, name: str | None, names: Collection[str]) -> None:
    """Check that a name is None or among ``names``.

    Raises:
        RequestError: if the name is not among ``names``.
    """
    if name is not None and name not in names:
        hint = near(name, names)
        choose = f"choose one of: {', '.join(sorted(names))}"
        raise RequestError(f"the results have no {kind} {quote(name)}; {f'{hint} {choose}' if hint else choose}")


def window_of(folder: str) -> Key | None:
    """Return the window that the name of a folder describes; None if the name does not have this form.

    >>> window_of("survey-v2/20260105T090000Z--20260105T100000.500Z")
    ('survey', 2, 1767603600000, 1767607200500)
    """
    match = _FOLDER.fullmatch(folder)
    if match is None:
        return None
    try:
        return match[1], int(match[2]), _moment(match[3], match[4]), _moment(match[5], match[6])
    except ValueError:  # for example, a thirteenth month
        return None


def collection_of(folder: str) -> CollectionKey | None:
    """Return the collection and version whose windows share the files of a folder; None if it is another folder.

    >>> collection_of("survey-v2/shared")
    ('survey', 2)
    """
    match = _SHARED.fullmatch(folder)
    return None if match is None else (match[1], int(match[2]))


def span_of(folder: str) -> Span | None:
    """Return the time of the windows of a folder of several collections; None if it is another folder.

    >>> span_of("all/20260105T090000Z--20260105T100000Z")
    (1767603600000, 1767607200000)
    """
    match = _OF_ALL.fullmatch(folder)
    try:
        return None if match is None else (_moment(match[1], match[2]), _moment(match[3], match[4]))
    except ValueError:  # as in ``window_of``
        return None


def _moment(second: str, fraction: str | None) -> int:
    moment = datetime.strptime(second, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 + int(fraction or 0)


@dataclass(frozen=True)
class Selection:
    """A selection of windows and estimators: a None attribute excludes nothing, and all other attributes must match.

    Attributes:
        collection: The name of a collection; selects all of its versions.
        since: A time in milliseconds; selects windows that end after it.
        until: A time in milliseconds; selects windows that begin before it.
        last: A number of windows; selects the windows of each collection that end last, published or not.
        estimator: The name of an estimator.
    """

    collection: str | None = None
    since: int | None = None
    until: int | None = None
    last: int | None = None
    estimator: str | None = None

    def windows(self, keys: Iterable[Key]) -> set[Key]:
        """Return the selected windows."""
        chosen = {
            key
            for key in keys
            if self.collection in (None, key[0])
            and (self.since is None or self.since < key[3])
            and (self.until is None or key[2] < self.until)
        }
        if self.last is None:
            return chosen
        times: dict[str, set[tuple[int, int]]] = {}
        for collection, _, start, end in chosen:
            times.setdefault(collection, set()).add((end, start))
        last = {collection: sorted(found)[-self.last :] for collection, found in times.items()}
        return {key for key in chosen if (key[3], key[2]) in last[key[0]]}

    def has_estimator(self, name: str | None) -> bool:
        """Return whether an estimator is selected; None, for no or an unknown estimator, is always selected."""
        return name is None or self.estimator in (None, name)


#: Selects all windows and estimators.
ALL = Selection()
