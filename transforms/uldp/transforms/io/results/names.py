"""Names of files below a folder of results; on each of Beam's file systems, slashes separate them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from uldp.schemas.specs.collection import COLLECTION, CollectionKey
from uldp.transforms.io.durable_files import container_bytes, digest_of

#: The scope of a file of panes of several collections; no collection has it, because its scope ends in its version.
ALL_COLLECTIONS = "all"

_STAMP = r"\d{8}T\d{6}(?:\.\d{3})?Z"
_PANES = re.compile(
    rf"(?P<scope>{ALL_COLLECTIONS}|(?P<collection>{COLLECTION})-v(?P<version>\d{{1,10}}))\.(?P<start>{_STAMP})--(?P<end>{_STAMP})"
    r"\.(?P<number>\d{6,10}|[0-9a-f]{32})(?:\.(?P<estimator>[a-z-]+))?\.avro"
)


class PaneFileName(NamedTuple):
    """What the name of a file of panes says."""

    of: CollectionKey | None  # the collection and version of its panes; None if it has panes of several
    start: int  # the first start of a window, in milliseconds
    end: int  # the last end of a window
    number: str  # the revision of its only pane, in six digits or more; or the digest of its panes, in hexadecimal
    estimator: str | None  # the estimator of its estimates; None if its panes are statistics

    def __str__(self) -> str:
        scope = ALL_COLLECTIONS if self.of is None else version_name(*self.of)
        ending = "" if self.estimator is None else f".{self.estimator}"
        return f"{scope}.{_span(self.start, self.end)}.{self.number}{ending}.avro"

    @classmethod
    def read(cls, name: str) -> "PaneFileName | None":
        """Read a name; None if no job writes a file of panes under it.

        >>> str(PaneFileName.read("survey-v2.20260105T090000Z--20260105T100000.500Z.000003.mle.avro"))
        'survey-v2.20260105T090000Z--20260105T100000.500Z.000003.mle.avro'
        """
        if (match := _PANES.fullmatch(name)) is None:
            return None
        try:
            start, end = _moment(match["start"]), _moment(match["end"])
        except ValueError:  # for example, a thirteenth month
            return None
        of = None if match["collection"] is None else (match["collection"], int(match["version"]))
        return cls(of, start, end, match["number"], match["estimator"])


def version_name(collection: str, version: int) -> str:
    """Return the name of a version of a collection in names of files and folders."""
    return f"{collection}-v{version}"


def window_name(collection: str, version: int, start: int, end: int) -> str:
    """Return a name of a window, such as ``survey-v2/20260105T090000Z--20260105T100000Z``; times in milliseconds."""
    return f"{version_name(collection, version)}/{_span(start, end)}"


def stored_file(folder: str, encoded: Sequence[bytes], schema: str) -> tuple[str, bytes]:
    """Return the name of a file of several records, below the results' folder, and its content."""
    return f"{folder}/{digest_of(encoded).hex()}.avro", container_bytes(schema, encoded)


def _span(start: int, end: int) -> str:
    return f"{_stamp(start)}--{_stamp(end)}"


def _stamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    fraction = f".{milliseconds % 1000:03d}" if milliseconds % 1000 else ""
    return f"{moment:%Y%m%dT%H%M%S}{fraction}Z"


def _moment(stamp: str) -> int:
    second, _, fraction = stamp.removesuffix("Z").partition(".")
    moment = datetime.fromisoformat(f"{second}+00:00")
    return int(moment.timestamp()) * 1000 + int(fraction or 0)
