"""Names of the files of panes, below a folder of results, and the content of a file of one record or of several.

On each of Beam's file systems, a name below a folder has slashes; to ask Beam took a third of the time to file a pane.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import container_bytes, digest_of, encode_record
from uldp.transforms.io.folders import COUNTS
from uldp.transforms.io.window_index import Place, indexed, indexed_of_several

#: The folder of a kind of result in which panes of several collections are together.
ALL_COLLECTIONS = "all"
#: The folder of a collection and version with files of several windows.
SHARED = "shared"


def window_folder(pane: PaneHeader) -> str:
    """Return the folder of a window's panes, below the folder of its kind of result."""
    return folder_of(*pane.key)


def folder_of(collection: str, version: int, start: int, end: int) -> str:
    """Return the same of the window that begins and ends at these times, in milliseconds.

    >>> folder_of("survey", 2, 1767603600000, 1767607200500)
    'survey-v2/20260105T090000Z--20260105T100000.500Z'
    """
    return f"{collection}-v{version}/{_span(start, end)}"


def _span(start: int, end: int) -> str:
    return f"{_stamp(start)}--{_stamp(end)}"


def _stamp(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    fraction = f".{milliseconds % 1000:03d}" if milliseconds % 1000 else ""
    return f"{moment:%Y%m%dT%H%M%S}{fraction}Z"


def estimate_file(estimate: Estimate) -> tuple[str, bytes]:
    """Return the name of an estimate's file, below the results' folder, and its content."""
    return estimate_name(estimate), container_bytes("estimate", [encode_record("estimate", estimate.to_avro())])


def estimate_name(estimate: Estimate) -> str:
    """Return the name of an estimate's file, below the results' folder."""
    return f"estimates/{window_folder(estimate)}/{estimate.pane.revision:06d}.{estimate.estimator}.avro"


def statistic_file(pane: PaneHeader, kind: str = COUNTS) -> tuple[str, bytes]:
    """Return the name of the file of a pane's statistic, below a folder of results, and its content.

    Args:
        pane: A statistic, or a header alone.
        kind: ``COUNTS`` or ``FEW``.
    """
    content = container_bytes("statistic", [encode_record("statistic", counts_to_avro(pane))])
    return statistic_name(pane, kind), content


def statistic_name(pane: PaneHeader, kind: str) -> str:
    """Return the name of the file of a pane's statistic; see ``statistic_file``."""
    return f"{kind}/{window_folder(pane)}/{pane.pane.revision:06d}.avro"


def shared_folder(kind: str, pane: PaneHeader) -> str:
    """Return the folder, below the results' folder, of files in which panes of a collection are together.

    Args:
        kind: ``COUNTS``, ``FEW`` or ``estimates``.
        pane: One of the panes.
    """
    return f"{kind}/{pane.collection}-v{pane.version}/{SHARED}"


def folder_of_all(kind: str, start: int, end: int) -> str:
    """Return the folder, below the results' folder, of files in which panes of several collections are together.

    No collection has it, because the folder of a collection ends in its version.

    Args:
        kind: ``COUNTS``, ``FEW`` or ``estimates``.
        start: The first start of their windows, in milliseconds.
        end: The last end of them.
    """
    return f"{kind}/{ALL_COLLECTIONS}/{_span(start, end)}"


def stored_file(folder: str, encoded: Sequence[bytes], schema: str) -> tuple[str, bytes]:
    """Return the name of a file of several records, below the results' folder, and its content."""
    return f"{folder}/{digest_of(encoded).hex()}.avro", container_bytes(schema, encoded)


def shared_file(
    folder: str, panes: Iterable[tuple[Place, bytes]], schema: str, ending: str = ".avro"
) -> tuple[str, bytes]:
    """Return the name of a file of several panes, below the results' folder, and its content; see ``indexed``."""
    digest, content = indexed(schema, panes)
    return f"{folder}/{digest}{ending}", content


def file_of_all(
    kind: str, panes: Sequence[tuple[CollectionKey, Place, bytes]], schema: str, ending: str = ".avro"
) -> tuple[str, bytes]:
    """Return the name of a file of panes of several collections, below the results' folder, and its content.

    Args:
        kind: ``COUNTS``, ``FEW`` or ``estimates``.
        panes: See ``indexed_of_several``.
        schema: The name of the schema of their records.
        ending: The ending of the name.
    """
    digest, content = indexed_of_several(schema, panes)
    folder = folder_of_all(kind, min(start for _, (_, start), _ in panes), max(end for _, (end, _), _ in panes))
    return f"{folder}/{digest}{ending}", content
