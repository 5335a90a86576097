"""The folders of results that a merge reads: their panes, and the ids of counted reports."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.merge.part import Ids
from uldp.pipelines.results.files import ResultsError, check_directory, finished, read_container, refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import firing
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, PaneRecord, Panes, folders_of, read_files
from uldp.pipelines.results.selection import ALL, Key
from uldp.pipelines.results.signed import Signed
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import FEW, IDS, JOB

#: Collection, version, and the start of a time slice.
Slice = tuple[str, int, int]
_ID = 16


@dataclass(frozen=True)
class Merging:
    """A folder of results to merge.

    Attributes:
        path: The folder.
        private: The folders that hold its late reports, its ids and its cells of few reports, if they are there.
    """

    path: Path
    private: tuple[Path, ...]

    @cached_property
    def results(self) -> ResultsFolder:
        """The folder, read so that damage is an error."""
        return ResultsFolder(self.path)

    @cached_property
    def job(self) -> JobIdentity | None:
        """The job that wrote it; None of one that was merged.

        Raises:
            ResultsError: if the file that says so is damaged.
        """
        return _job_of(self.path)

    def is_of_late(self, stream: "Merging") -> bool:
        """Return whether its job has counted the late reports of another folder."""
        late = {(place / "late").resolve() for place in (stream.path, *stream.private)}
        return self.job is not None and self.job.command == "backfill" and Path(self.job.source).resolve() in late

    def panes(self) -> Iterator[PaneHeader]:
        """Read each pane, with its cells if they are there; two may be equal."""
        for pane in _panes(self.path, PANES):
            cells = self._few.get(firing(pane))
            if cells is not None and not isinstance(pane, Statistic):
                yield Statistic(**pane.header(), cells=cells.cells)
            else:
                yield pane

    @cached_property
    def _few(self) -> Mapping[tuple[object, ...], Statistic]:
        panes = (pane for place in self.private for pane in _panes(place, FEW_PANES))
        return {firing(pane): pane for pane in panes if isinstance(pane, Statistic)}

    def estimates(self) -> Iterator[Estimate]:
        """Read each estimate; two may be equal."""
        return _panes(self.path, ESTIMATES)

    def check_all(self, panes: Iterable[PaneHeader]) -> None:
        """Compare the panes that are there with those that a local job has signed.

        Raises:
            ResultsError: if one is not there.
        """
        for lost in Signed.read(self.path).lost_panes(self.path, panes, ALL, ()):
            raise lost

    def check_cells(self, panes: Iterable[PaneHeader]) -> None:
        """Check that panes to join have their cells.

        Raises:
            ResultsError: if those of one are apart, and not there.
        """
        for pane in panes:
            if not isinstance(pane, Statistic):
                raise ResultsError(
                    f"{plain(str(self.private[-1] / FEW))}: does not hold the counts of the {pane.n:,} reports of"
                    f" {pane.collection} v{pane.version} from {iso(pane.window_start)}; restore it, or give the"
                    " directory of --private-to by --private"
                )

    def ids(self, slices: Mapping[CollectionKey, set[int]]) -> dict[Slice, Ids]:
        """Read the ids of the counted reports of time slices; empty if the folder keeps none.

        Raises:
            ResultsError: if a file is damaged.
        """
        found: dict[Slice, list[bytes]] = defaultdict(list)
        for place in self.private:
            for path in finished(place / IDS):
                for collection, version, start, ids in read_container(path, "ids", _read_ids):
                    if start in slices.get((collection, version), ()):
                        found[collection, version, start].append(ids)
        return {key: np.unique(np.frombuffer(b"".join(parts), f"S{_ID}")) for key, parts in found.items()}

    def described(self) -> dict[str, str | None]:
        """Return what the record of a merge says of the folder."""
        job = self.job
        return {
            "path": str(self.path.absolute()),
            "job": None if job is None else str(job),
            "content": None if job is None else job.content,
        }


def folders_to_merge(paths: Sequence[Path], private: Sequence[Path]) -> list[Merging]:
    """Return the folders with their private ones, which are those of the same job.

    Raises:
        ResultsError: if a private folder is of none of these jobs.
    """
    for place in private:
        check_directory(place)
    jobs, apart = [_job_of(path) for path in paths], [_job_of(place) for place in private]
    for place, job in zip(private, apart, strict=True):
        if job is None or job not in jobs:
            raise ResultsError(
                f"{plain(str(place))}: is not the private directory of any of the results; give that of --private-to of"
                " one of their jobs"
            )
    pairs = list(zip(private, apart, strict=True))
    return [
        Merging(path, (path, *(place for place, of in pairs if of == job)))
        for path, job in zip(paths, jobs, strict=True)
    ]


def _job_of(folder: Path) -> JobIdentity | None:
    path = folder / JOB
    try:
        return JobIdentity.read(path) if path.exists() else None
    except ValueError as error:
        raise ResultsError(f"{plain(str(path))}: {error}; restore the original file") from error


def _read_ids(value: Mapping[str, object]) -> tuple[str, int, int, bytes]:
    collection, version, start, ids = value["collection"], value["version"], value["slice"], value["ids"]
    assert isinstance(collection, str)
    assert isinstance(version, int)
    assert isinstance(start, int)
    assert isinstance(ids, bytes)
    if len(ids) % _ID:
        raise ContainerError(f"an id has {_ID} bytes")
    return collection, version, start, ids


def _panes(root: Path, kind: Panes[PaneRecord]) -> Iterator[PaneRecord]:
    for folder in sorted(folders_of(root, kind)):
        for panes in (read_files(root, kind, folder, ALL, refuse) or {}).values():
            yield from panes


def slices_of(keys: Iterable[Key], sizes: Mapping[CollectionKey, int]) -> dict[CollectionKey, set[int]]:
    """Return the time slices of windows, by collection and version; ``sizes`` are those of a slice."""
    found: dict[CollectionKey, set[int]] = defaultdict(set)
    for collection, version, start, end in keys:
        found[collection, version].update(range(start, end, sizes[collection, version]))
    return found


def ids_of(key: Key, size: int, ids: Mapping[Slice, Ids]) -> Ids:
    """Return the ids of a window from those of its time slices, of which no two have an id in common."""
    collection, version, start, end = key
    parts = [ids[collection, version, at] for at in range(start, end, size) if (collection, version, at) in ids]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, f"S{_ID}")


def record_of(folders: Sequence[Merging]) -> bytes:
    """Return the content of the file that names the folders of a merge."""
    return json.dumps({"folders": [folder.described() for folder in folders]}, indent=2).encode() + b"\n"
