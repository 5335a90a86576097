"""The panes of a results directory, read window by window.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/estimates/<collection>-v<version>/shared/[<day>-]<digest>.<estimator>.avro
    OUT/counts/<collection>-v<version>/shared/[<day>-]<digest>.avro
    PRIVATE/few/<collection>-v<version>/<start>--<end>/<revision>.avro
    PRIVATE/few/<collection>-v<version>/shared/[<day>-]<digest>.avro
    PRIVATE/rejected/*.avro
    OUT/missing/*.avro

PRIVATE is OUT, or the place of ``--private-to``. If a pane, or a variable of its record, has fewer reports than
``limits.min_reports``, its statistic is in ``few``, and ``counts`` has its header alone.

The files in ``shared`` hold panes of several windows, and an index of them; ``uldp compact`` writes those of a day.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, finished, read_container
from uldp.pipelines.results.selection import Key, Selection, collection_of, window_of
from uldp.pipelines.results.soundness import check_claim, sound_counts, sound_estimate
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.window_index import Place

PaneRecord = TypeVar("PaneRecord", bound=PaneHeader)


@dataclass(frozen=True)
class Panes(Generic[PaneRecord]):
    """A kind of pane: its folder, its schema, and the function that makes a pane from a value of this schema."""

    folder: str
    schema: str
    read: Callable[[Mapping[str, Any]], PaneRecord]


PANES = Panes(COUNTS, "statistic", sound_counts)
FEW_PANES = Panes(FEW, "statistic", sound_counts)
ESTIMATES = Panes("estimates", "estimate", sound_estimate)
#: The headers of these, which take little memory.
HEADERS = Panes(COUNTS, "statistic", lambda value: PaneHeader(**sound_counts(value).header()))
HEADERS_OF_ESTIMATES = Panes("estimates", "estimate", lambda value: replace(sound_estimate(value), tables=()))


def read_window(
    out: Path,
    kind: Panes[PaneRecord],
    folder: str,
    selection: Selection,
    damaged: Damaged,
    first: Place | None = None,
) -> list[PaneRecord] | None:
    """Read the panes of one window, or those in ``shared`` of ``first`` and later ones; None if a file is damaged."""
    files = read_files(out, kind, folder, selection, damaged, first)
    return None if files is None else [pane for panes in files.values() for pane in panes]


def read_files(
    out: Path,
    kind: Panes[PaneRecord],
    folder: str,
    selection: Selection,
    damaged: Damaged,
    first: Place | None = None,
) -> dict[Path, list[PaneRecord]] | None:
    """Read the panes as ``read_window`` does, by file."""
    files: dict[Path, list[PaneRecord]] = {}
    whole = True
    for path in finished(out / kind.folder / folder):
        estimator = estimator_of(path)
        if not selection.has_estimator(estimator):
            continue
        try:
            files[path] = read_file(path, kind, folder, first)
        except ResultsError as error:
            whole = False
            damaged(error)
    return files if whole else None


def read_file(path: Path, kind: Panes[PaneRecord], folder: str, first: Place | None = None) -> list[PaneRecord]:
    """Read the panes of a file, of one of a window or of ``shared``; of windows before ``first``, none.

    Raises:
        ResultsError: if the file cannot be read, its panes are of another window or estimator than its name says, or it
            claims more than a job writes.
    """
    window, shared, spec = (
        window_of(folder),
        collection_of(folder),
        path.parents[3] / "specs" / path.parents[1].name / "spec.yaml",
    )
    number = count()

    def read(value: Mapping[str, Any]) -> PaneRecord:
        if next(number) and window is not None:
            raise ContainerError("holds several panes, and only a shared file may")
        check_claim(value, spec)
        return _named(kind.read(value), window or shared, estimator_of(path))

    return list(read_container(path, kind.schema, read, first))


def _named(fired: PaneRecord, folder: Key | CollectionKey | None, estimator: str | None) -> PaneRecord:
    """Check that the window, or the collection, and the estimator of a pane match its path, as far as it names them."""
    if folder is not None and folder != fired.key[: len(folder)]:
        raise ValueError("the record is of another window or collection than its folder")
    if isinstance(fired, Estimate) and estimator not in (None, fired.estimator):
        raise ValueError("the record is of another estimator than its file name")
    return fired


def folders_of(out: Path, kind: Panes[Any]) -> set[str]:
    """Return the folders of windows, ``<collection>-v<version>/<start>--<end>``."""
    return {f"{path.parent.name}/{path.name}" for path in (out / kind.folder).glob("*/*")}


def estimator_of(path: Path) -> str | None:
    """Read the estimator from the name of a file, ``<revision>.<estimator>.avro`` or ``<digest>.<estimator>.avro``."""
    parts = path.name.split(".")
    return parts[1] if len(parts) == 3 else None
