"""Files of panes: the content of a file, whose header has the header of each pane, so that a reader finds some of them.

A file has panes of one kind, and estimates of one estimator. The panes are in the order of collections, windows and
bytes, and so are their headers in the header of the file, with a digest of these and of the sync marker, which names
the panes. So headers that are damaged, or those of another file, are found.
"""

import base64
import hashlib
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from uldp.schemas.codec.blocks import MAX_HEADER_BYTES, Container, ContainerError, read_record
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import COLLECTION, MAX_VERSION, CollectionKey
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import container_bytes, digest_of, encode_record
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.results.filing import MAX_RECORDS, File
from uldp.transforms.io.results.names import PaneFileName

_KEY = "uldp.panes"
_NAME = re.compile(COLLECTION)
_DIGEST_DIGITS = 16
#: The largest headers of the panes of a file in bytes, when inflated: ``MAX_RECORDS`` with long names have fewer.
_MAX_BYTES = 1 << 23
#: The largest entry for them in the header of a file, next to the schema.
_MAX_STORED = MAX_HEADER_BYTES - (1 << 16)
#: The size of a block: who reads a pane decodes the others in its block.
_BLOCK_SIZE = 1 << 14

#: A record of a pane.
P = TypeVar("P", bound=PaneHeader)


@dataclass(frozen=True)
class PaneFolder(Generic[P]):
    """A folder of files of panes, below a folder of results."""

    name: str
    schema: str  # the name of the schema of the panes' records
    to_avro: Callable[[P], Mapping[str, Any]]  # returns the value of a record
    bare: Callable[[P], P]  # returns a pane without its figures


def _header(pane: PaneHeader) -> PaneHeader:
    return PaneHeader(**pane.header())


def _described(estimate: Estimate) -> Estimate:
    return replace(estimate, tables=())


#: Statistics, or headers alone of those whose cells are apart.
STATISTICS = PaneFolder(COUNTS, "statistic", counts_to_avro, _header)
#: Statistics of few reports.
FEW_STATISTICS = PaneFolder(FEW, "statistic", counts_to_avro, _header)
ESTIMATES = PaneFolder("estimates", "estimate", Estimate.to_avro, _described)


class EncodedPane(NamedTuple):
    """A pane as a file holds it; panes sort in the order of a file."""

    of: CollectionKey  # its collection and version
    window: tuple[int, int]  # the end and the start of its window, in milliseconds
    record: bytes
    bare: bytes  # its record without its figures
    revision: int  # the number of the pane

    @classmethod
    def encode(cls, folder: PaneFolder[P], pane: P) -> "EncodedPane":
        """Encode a pane."""
        record, bare = (encode_record(folder.schema, folder.to_avro(each)) for each in (pane, folder.bare(pane)))
        return cls(pane.key[:2], (pane.window_end, pane.window_start), record, bare, pane.pane.revision)


def pane_files(
    folder: PaneFolder[Any], panes: Iterable[EncodedPane], estimator: str | None, *, joined: bool = False
) -> Iterator[File]:
    """Yield the file of some panes, or several if headers are too many; equal panes, in any order, give equal files.

    A file of one pane has its revision in its name, and replaces an earlier one of a job that ran before; but if panes
    are ``joined`` from other files, it has their digest, so that it replaces no file that a job writes meanwhile.
    """
    ordered = sorted(set(panes))
    records = [pane.record for pane in ordered]
    digest = digest_of(records)
    stored = _stored([pane.bare for pane in ordered], digest)
    if len(ordered) > MAX_RECORDS or len(stored) > _MAX_STORED:
        middle = len(ordered) // 2
        for half in (ordered[:middle], ordered[middle:]):
            yield from pane_files(folder, half, estimator, joined=joined)
        return
    one = len({pane.of for pane in ordered}) == 1
    start, end = min(pane.window[1] for pane in ordered), max(pane.window[0] for pane in ordered)
    number = _revision(ordered[0].revision) if len(ordered) == 1 and not joined else digest.hex()
    name = PaneFileName(ordered[0].of if one else None, start, end, number, estimator)
    content = container_bytes(folder.schema, records, deflated=True, metadata={_KEY: stored}, block_size=_BLOCK_SIZE)
    yield File(f"{folder.name}/{name}", content)


def _revision(revision: int) -> str:
    return f"{revision:06d}"


def name_of_pane(folder: PaneFolder[P], pane: P, revision: int) -> str:
    """Return the name of the file, below the results' folder, that has one pane of a window alone."""
    estimator = pane.estimator if isinstance(pane, Estimate) else None
    return f"{folder.name}/{PaneFileName(pane.key[:2], *pane.key[2:], _revision(revision), estimator)}"


def headers_in(container: Container, name: PaneFileName) -> list[dict[str, Any]]:
    """Read the records without figures from the header of a file, in order; ContainerError unless they are its own."""
    stored = container.metadata.get(_KEY, b"").decode("latin1")
    text = stored[_DIGEST_DIGITS:]
    if stored[:_DIGEST_DIGITS] != _signed(text, container.sync_marker):
        raise ContainerError("its header does not have the headers of its panes, or they are damaged")
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    except (ValueError, zlib.error):
        raise ContainerError("the headers of its panes are damaged") from None
    if not inflater.eof:
        raise ContainerError("the headers of its panes take too many bytes, or end too early")
    body, found = io.BytesIO(inflated), list[dict[str, Any]]()
    reader = None if container.current else load_schema(container.name)
    while body.tell() < len(inflated) and len(found) < MAX_RECORDS:
        found.append(read_record(body, container.writer, reader))
    if body.tell() < len(inflated):
        raise ContainerError("the headers of its panes are too many")
    _check_name(found, container, name)
    return found


def check_whole(container: Container, panes: int) -> None:
    """Check that a file's blocks end where they say, with as many panes as the header; ContainerError if not."""
    if container.count() != panes:
        raise ContainerError("it has more or fewer panes than its header")


def _check_name(found: Sequence[Mapping[str, Any]], container: Container, name: PaneFileName) -> None:
    of = {(value["collection"], value["version"]) for value in found}
    if not found or not all(_NAME.fullmatch(name) and 0 < version < MAX_VERSION for name, version in of):
        raise ContainerError("no collection has such a name and version")  # they become a part of a path
    span = min(map(itemgetter("window_start"), found)), max(map(itemgetter("window_end"), found))
    numbers = {container.sync_marker.hex()}
    if len(found) == 1:
        numbers.add(_revision(found[0]["pane"]["revision"]))
    estimators = {value.get("estimator") for value in found}
    said = of if name.of is None else {name.of}, (name.start, name.end), {name.estimator}
    if said != (of, span, estimators) or name.number not in numbers:
        raise ContainerError("its panes are of other windows, collections or estimators than its name")


def _stored(bare: Sequence[bytes], marker: bytes) -> str:
    text = base64.b64encode(zlib.compress(b"".join(bare))).decode()
    return f"{_signed(text, marker)}{text}"


def _signed(text: str, marker: bytes) -> str:
    return hashlib.sha256(marker + text.encode("latin1")).hexdigest()[:_DIGEST_DIGITS]
