"""The folders of results that a merge reads: their panes, and the ids of counted reports."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from uldp.pipelines.jobs.identity import JobIdentity, job_of
from uldp.pipelines.merge.ids import ID, Ids
from uldp.pipelines.merge.part import Part, chosen
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import ResultsError, check_directory, finished, read_container, refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import firing, identity, newest
from uldp.pipelines.results.panes import ESTIMATES, FEW_PANES, PANES, Entry
from uldp.pipelines.results.selection import ALL, Key, window_name
from uldp.pipelines.results.signed import Signed
from uldp.schemas.codec.blocks import ContainerError
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS, FEW, IDS, JOB, is_remote
from uldp.transforms.io.local.journal import JOURNAL

#: What a merge reads of results that are far away.
READ = ("specs", COUNTS, FEW, ESTIMATES.folder, IDS, JOB, JOURNAL)
#: Collection, version, and the start of a time slice.
Slice = tuple[str, int, int]


@dataclass(frozen=True)
class Merging:
    """A folder of results to merge. Headers of panes are in memory, and the panes of a few files."""

    name: str  # the folder as it was given, or its URL
    path: Path  # the folder, or a copy of what a merge reads of the URL
    #: The folders that hold its late reports, its ids and its cells of few reports, if they are there.
    private: tuple[Path, ...]

    @cached_property
    def results(self) -> ResultsFolder:
        """The folder, read so that damage is an error."""
        return ResultsFolder(self.path)

    @cached_property
    def job(self) -> JobIdentity | None:
        """The job that wrote it; None of one that was merged; ResultsError if the file that says so is damaged."""
        return job_of(self.path)

    def is_of_late(self, stream: "Merging") -> bool:
        """Return whether its job has counted the late reports of another folder."""
        late = {str((place / "late").resolve()) for place in (stream.path, *stream.private)}
        late.add(f"{stream.name.rstrip('/')}/late")
        if self.job is None or self.job.command != "backfill":
            return False
        source = self.job.source
        return (source.rstrip("/") if is_remote(source) else str(Path(source).resolve())) in late

    @cached_property
    def windows(self) -> Mapping[Key, list[PaneHeader]]:
        """The headers of all panes of each window; two may be equal."""
        found: dict[Key, list[PaneHeader]] = defaultdict(list)
        for entry in self._counts.values():
            found[entry.header.key].append(entry.header)
        return found

    @cached_property
    def _catalog(self) -> Catalog:
        return Catalog.read(self.path, (PANES, ESTIMATES), refuse)

    @cached_property
    def _counts(self) -> Mapping[tuple[object, ...], Entry[PaneHeader]]:
        return {firing(entry.header): entry for entry in self._catalog.entries(PANES)}

    @cached_property
    def _few(self) -> Mapping[tuple[object, ...], tuple[Catalog, Entry[PaneHeader]]]:
        catalogs = [Catalog.read(place, (FEW_PANES,), refuse) for place in self.private]
        return {firing(each.header): (catalog, each) for catalog in catalogs for each in catalog.entries(FEW_PANES)}

    @cached_property
    def _estimates(self) -> Mapping[Key, list[Entry[Estimate]]]:
        found: dict[Key, list[Entry[Estimate]]] = defaultdict(list)
        for entry in self._catalog.entries(ESTIMATES):
            found[entry.header.key].append(entry)
        return found

    @property
    def headers(self) -> Iterator[PaneHeader]:
        """The headers of all panes and of all estimates."""
        yield from (entry.header for entry in self._counts.values())
        yield from (entry.header for of_window in self._estimates.values() for entry in of_window)

    def part(self, number: int, key: Key, ids: Ids) -> Part:
        """Read the newest panes of a window, with the cells that are there, and its newest estimates, into a part.

        ``number`` is that of this folder. ResultsError if a file is damaged, or was removed since its headers were
        read.
        """
        panes = tuple(self._with_cells(header) for header in chosen(self.windows[key]))
        entries = {identity(entry.header): entry for entry in self._estimates.get(key, ())}
        last = newest(entry.header for entry in entries.values())
        estimates = (self._catalog.pane(ESTIMATES, entries[identity(header)]) for header in last)
        return Part((number,), panes, tuple(filter(None, estimates)), ids)

    def _with_cells(self, header: PaneHeader) -> PaneHeader:
        pane = self._catalog.pane(PANES, self._counts[firing(header)])
        assert pane is not None  # else it is damage, which is an error here
        if isinstance(pane, Statistic) or firing(header) not in self._few:
            return pane
        catalog, entry = self._few[firing(header)]
        few = catalog.pane(FEW_PANES, entry)
        return Statistic(**pane.header(), cells=few.cells) if isinstance(few, Statistic) else pane

    def check_all(self, panes: Iterable[PaneHeader]) -> None:
        """Raise ResultsError if a pane is not there that a local job has signed."""
        for lost in Signed.read(self.path).lost_panes(self.path, panes, ALL, lambda _: False):
            raise lost

    def check_cells(self, panes: Iterable[PaneHeader]) -> None:
        """Raise ResultsError if a pane to join has cells apart that are not there."""
        for pane in panes:
            if not isinstance(pane, Statistic):
                raise ResultsError(
                    f"{plain(str(self.private[-1] / FEW))}: does not hold the counts of the {pane.n:,} reports of"
                    f" {window_name(pane.key)}; restore it, or give the directory of --private-to by --private"
                )

    def ids(self, slices: Mapping[CollectionKey, set[int]]) -> dict[Slice, Ids]:
        """Read the ids of counted reports of time slices; empty if none are kept; ResultsError if damaged."""
        found: dict[Slice, list[bytes]] = defaultdict(list)
        for place in self.private:
            for path in finished(place / IDS):
                for collection, version, start, ids in read_container(path, "ids", _read_ids):
                    if start in slices.get((collection, version), ()):
                        found[collection, version, start].append(ids)
        return {key: Ids.of(parts) for key, parts in found.items()}

    def described(self) -> dict[str, str | None]:
        """Return what the record of a merge says of the folder."""
        job = self.job
        return {
            "path": self.name if is_remote(self.name) else str(Path(self.name).absolute()),
            "job": None if job is None else str(job),
            "content": None if job is None else job.content,
        }


def folders_to_merge(places: Sequence[tuple[str, Path]], private: Sequence[tuple[str, Path]]) -> list[Merging]:
    """Return named folders, or copies, with their jobs' private ones; ResultsError if one of these is of none."""
    for _, path in private:
        check_directory(path)
    jobs = [job_of(path) for _, path in places]
    apart = [(job_of(path), path) for _, path in private]
    for (name, _), (job, _) in zip(private, apart, strict=True):
        if job is None or job not in jobs:
            files = " or ".join(plain(f"{each}/{JOB}") for each, _ in places)
            raise ResultsError(
                f"{plain(name)}: is not the private directory of any of the results; give that of --private-to of"
                f" one of their jobs, or restore {files}"
            )
    return [
        Merging(name, path, (path, *(place for of, place in apart if of == job)))
        for (name, path), job in zip(places, jobs, strict=True)
    ]


def _read_ids(value: Mapping[str, Any]) -> tuple[str, int, int, bytes]:
    if len(value["ids"]) % ID:
        raise ContainerError(f"an id has {ID} bytes")
    return value["collection"], value["version"], value["slice"], value["ids"]


def slices_of(keys: Iterable[Key], sizes: Mapping[CollectionKey, int]) -> dict[CollectionKey, set[int]]:
    """Return the time slices of windows, by collection and version; ``sizes`` are those of a slice."""
    found: dict[CollectionKey, set[int]] = defaultdict(set)
    for collection, version, start, end in keys:
        found[collection, version].update(range(start, end, sizes[collection, version]))
    return found


def ids_of(key: Key, size: int, ids: Mapping[Slice, Ids]) -> Ids:
    """Return the ids of a window from those of its time slices, of which no two have an id in common."""
    collection, version, start, end = key
    slices = ((collection, version, at) for at in range(start, end, size))
    return Ids.union(ids[each] for each in slices if each in ids)


def record_of(folders: Sequence[Merging]) -> bytes:
    """Return the content of the file that names the folders of a merge."""
    return json.dumps({"folders": [folder.described() for folder in folders]}, indent=2).encode() + b"\n"
