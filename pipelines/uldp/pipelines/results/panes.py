"""The panes of a results directory, read window by window.

    OUT/specs/<collection>-v<version>/spec.yaml
    OUT/estimates/<collection>-v<version>/<start>--<end>/<revision>.<estimator>.avro
    OUT/counts/<collection>-v<version>/<start>--<end>/<revision>.avro
    OUT/estimates/<collection>-v<version>/shared/[<day>-]<digest>.<estimator>.avro
    OUT/counts/<collection>-v<version>/shared/[<day>-]<digest>.avro
    PRIVATE/few/<collection>-v<version>/<start>--<end>/<revision>.avro
    PRIVATE/few/<collection>-v<version>/shared/[<day>-]<digest>.avro
    OUT/estimates/all/<start>--<end>/<digest>.<estimator>.avro
    OUT/counts/all/<start>--<end>/<digest>.avro
    PRIVATE/few/all/<start>--<end>/<digest>.avro
    PRIVATE/rejected/*.avro
    OUT/missing/*.avro

PRIVATE is OUT, or the place of ``--private-to``. If a pane, or a variable of its record, has fewer reports than
``limits.min_reports``, its statistic is in ``few``, and ``counts`` has its header alone.

The files in ``shared`` hold panes of several windows, and an index of them; ``uldp compact`` writes those of a day.
The files in ``all`` hold panes of several collections, with such an index too. The name of their folder says when the
first of their windows starts and the last one ends.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, finished, read_container
from uldp.pipelines.results.hidden import Hidden
from uldp.pipelines.results.selection import Key, Selection, collection_of, span_of, window_of
from uldp.pipelines.results.soundness import check_claim, sound_counts, sound_estimate
from uldp.pipelines.results.wanted import ALL_PANES, Wanted
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.results.names import SHARED

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
    wanted: Wanted = ALL_PANES,
    hidden: Hidden | None = None,
) -> list[PaneRecord] | None:
    """Read the panes of one folder, without the names of the files; see ``read_files``."""
    files = read_files(out, kind, folder, selection, damaged, wanted, hidden)
    return None if files is None else [pane for panes in files.values() for pane in panes]


def read_files(
    out: Path,
    kind: Panes[PaneRecord],
    folder: str,
    selection: Selection,
    damaged: Damaged,
    wanted: Wanted = ALL_PANES,
    hidden: Hidden | None = None,
) -> dict[Path, list[PaneRecord]] | None:
    """Read the panes of one window, or those of a folder of several that are wanted, by file.

    Args:
        out: The results directory.
        kind: The kind of panes.
        folder: The folder, as ``folders_of`` gives it.
        selection: Files of estimators that are not selected are not opened.
        damaged: Called for each damaged file.
        wanted: Which panes of several windows are read.
        hidden: Takes the windows that a damaged file of several collections may hold; the caller leaves out all their
            panes. Without it, such a file hides its folder, as other files do.

    Returns:
        None if a file is damaged that hides its folder.
    """
    files: dict[Path, list[PaneRecord]] = {}
    whole, span = True, span_of(folder)
    for path in finished(out / kind.folder / folder):
        estimator = estimator_of(path)
        if not selection.has_estimator(estimator):
            continue
        try:
            files[path] = read_file(path, kind, folder, wanted)
        except ResultsError as error:
            damaged(error)
            if span is None or hidden is None:
                whole = False
            else:
                hidden.add_file(path, span)
    return files if whole else None


def read_file(path: Path, kind: Panes[PaneRecord], folder: str, wanted: Wanted = ALL_PANES) -> list[PaneRecord]:
    """Read the panes of a file: that of one window, or those of a file of several that are wanted.

    Raises:
        ResultsError: if the file cannot be read, its panes are of another window or estimator than its name says, or it
            claims more than a job writes.
    """
    window, shared, span = window_of(folder), collection_of(folder), span_of(folder)
    specs, version = path.parents[3] / "specs", path.parents[1].name
    number = count()
    own = None if span is not None else specs / version / "spec.yaml"  # not a path for each pane: it takes as long

    def read(value: Mapping[str, Any]) -> PaneRecord:
        if next(number) and window is not None:
            raise ContainerError("holds several panes, and only a shared file may")
        check_claim(value, own or specs / _version_of(value) / "spec.yaml")
        fired = _named(kind.read(value), window or shared, estimator_of(path))
        if span is not None and not span[0] <= fired.window_start < fired.window_end <= span[1]:
            raise ValueError("the record is of another time than its folder")
        return fired

    return list(read_container(path, kind.schema, read, wanted))


def _version_of(value: Mapping[str, Any]) -> str:
    """Return the name of the folder of a pane's version, which is part of a path."""
    name = f"{value['collection']}-v{value['version']}"
    if collection_of(f"{name}/{SHARED}") is None:
        raise ValueError("no collection has this name")
    return name


def _named(fired: PaneRecord, folder: Key | CollectionKey | None, estimator: str | None) -> PaneRecord:
    """Check that the window, or the collection, and the estimator of a pane match its path, as far as it names them."""
    if folder is not None and folder != fired.key[: len(folder)]:
        raise ValueError("the record is of another window or collection than its folder")
    if isinstance(fired, Estimate) and estimator not in (None, fired.estimator):
        raise ValueError("the record is of another estimator than its file name")
    return fired


def folders_of(out: Path, *kinds: Panes[Any]) -> Iterator[str]:
    """Yield the folders of panes, such as ``<collection>-v<version>/<start>--<end>``, in the order to read them in.

    ``uldp compact`` writes panes into ``shared`` before it removes them elsewhere. So those folders come last, as they
    are by then: no pane is missed while it moves.
    """
    yield from sorted(name for name in _folders(out, kinds) if not name.endswith(f"/{SHARED}"))
    yield from sorted(name for name in _folders(out, kinds) if name.endswith(f"/{SHARED}"))


def _folders(out: Path, kinds: Iterable[Panes[Any]]) -> set[str]:
    return {f"{path.parent.name}/{path.name}" for kind in kinds for path in paths_below(out / kind.folder, "*/*")}


def estimator_of(path: Path) -> str | None:
    """Read the estimator from the name of a file, ``<revision>.<estimator>.avro`` or ``<digest>.<estimator>.avro``."""
    parts = path.name.split(".")
    return parts[1] if len(parts) == 3 else None
