"""Merge folders of results into one, in which each report is counted once.

A window of one folder is taken as it is. Windows that several folders have are joined if the ids of their reports show
that they have none in common, or that one has all of the others'. Where a folder keeps no ids, copies of it show it by
statistics that no other reports would have. Otherwise nothing is written: sums of what may overlap would count reports
twice.

The record of a merge is in two files: ``merged.json`` names the folders, and ``provenance.jsonl`` says of each window
which folders it is from, and why each of its reports is counted once. A journal signs what is written, as that of a job
does. Late and rejected reports stay where they are.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.merge.folders import READ, Merging, folders_to_merge, ids_of, record_of, slices_of
from uldp.pipelines.merge.ids import Ids
from uldp.pipelines.merge.joining import UnprovedError, join
from uldp.pipelines.merge.part import Part, Proof, are_copies, equal_statistics, log_chance
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.local_copy import here
from uldp.pipelines.results.selection import Key, window_name
from uldp.pipelines.results.text import number_of
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import MERGED, Kind, is_remote, kind_of
from uldp.transforms.io.remote import fetched, matching
from uldp.transforms.io.results.pane_files import ESTIMATES
from uldp.transforms.io.results.panes import PaneFiling
from uldp.transforms.io.results.signing import line_of_pane, write_journal
from uldp.transforms.io.results.writers import FilesWriter, StatisticsWriter

#: The file that says from which folders each window is.
PROVENANCE = "provenance.jsonl"


@dataclass(frozen=True)
class Merged:
    """What a merge has written."""

    windows: Mapping[Proof, int]  # the number of windows, by why each of their reports is counted once
    reports: int  # the number of counted reports

    def __str__(self) -> str:
        of = "; ".join(f"of {number:,} {proof}" for proof, number in self.windows.items())
        return f"{number_of(sum(self.windows.values()), 'window')} of {self.reports:,} reports: {of}"


def merge(places: Sequence[str], out: str, *, private: Sequence[str] = (), private_to: str | None = None) -> Merged:
    """Merge folders into ``out``. The same merge again writes the same files.

    Folders are read twice: what cannot be proved is refused before anything is written. In memory are the headers of
    panes, the ids of windows that several folders have, and one window. If specs differ in what the collector alone
    uses, the last counts. EndpointError if a file cannot be fetched, ResultsError if one is damaged, two cannot be
    merged, or ``out`` is another's.
    """
    with ExitStack() as stack:
        of, apart = ([(name, stack.enter_context(here(name, READ))) for name in names] for names in (places, private))
        folders = folders_to_merge(of, apart)
        specs = _specs(folders)
        _check_target(out, folders)
        windows = _Windows(folders, specs)
        windows.prove()
        return _write(windows, out, private_to or out)


class _Windows:
    """The windows of all folders, of which those that several have are joined as they are read."""

    def __init__(self, folders: Sequence[Merging], specs: Sequence[CollectionSpec]) -> None:
        self.folders, self.specs = folders, specs
        self._served = SharedSpecs(specs).served
        self._sizes = {spec.key: milliseconds(spec.window.slice) for spec in specs}
        self._having: dict[Key, list[int]] = defaultdict(list)
        for number, folder in enumerate(folders):
            folder.check_all(folder.headers)
            for key in folder.windows:
                if key[:2] not in self._sizes:
                    raise ResultsError(f"{plain(folder.name)}: has no spec of {key[0]} v{key[1]}")
                self._having[key].append(number)
        shared = slices_of(self._shared, self._sizes)
        self._ids = [folder.ids(shared) if shared else {} for folder in folders]
        self._copies = self._found_copies()

    @property
    def _shared(self) -> list[Key]:
        return [key for key in sorted(self._having) if len(self._having[key]) > 1]

    def prove(self) -> None:
        """Raise ResultsError if a window cannot be joined."""
        unproved: list[str] = []
        for key in self._shared:
            try:
                self._join(self._parts(key), key, estimating=False)
            except UnprovedError as error:
                one, other = (plain(self.folders[number].name) for number in error.folders)
                unproved.append(f"{one} and {other} both have the window of {window_name(key)}, and {error}")
        if unproved:
            more = f" (and {len(unproved) - 1:,} windows more)" if len(unproved) > 1 else ""
            raise ResultsError(f"{unproved[0]}{more}")

    def __iter__(self) -> Iterator[Part]:
        """Read each window, in order, and join what the folders have of it."""
        for key in sorted(self._having):
            parts = self._parts(key)
            yield parts[0] if len(parts) == 1 else self._join(parts, key, estimating=True)

    def _parts(self, key: Key) -> list[Part]:
        """Read what each folder has of a window, with the ids of its reports if several have it."""
        found = []
        for number in self._having[key]:
            shared = len(self._having[key]) > 1
            ids = ids_of(key, self._sizes[key[:2]], self._ids[number]) if shared else Ids()
            found.append(self.folders[number].part(number, key, ids))
            if shared:
                self.folders[number].check_cells(found[-1].panes)
        return found

    def _join(self, parts: Sequence[Part], key: Key, *, estimating: bool) -> Part:
        def copies(one: Part, other: Part) -> bool:
            return (frozenset((*one.folders, *other.folders)), key[:2]) in self._copies

        def late(part: Part, stream: Part) -> bool:
            return self.folders[part.folders[0]].is_of_late(self.folders[stream.folders[0]])

        return join(parts, self._served[key[:2]], copies=copies, late=late, estimating=estimating)

    def _found_copies(self) -> set[tuple[frozenset[int], CollectionKey]]:
        """Return pairs of folders whose windows of a version are equal by ``are_copies``, unless ids differ there."""
        alike: dict[tuple[frozenset[int], CollectionKey], list[float]] = defaultdict(list)
        differ, refuted = set(), set()
        for key in self._shared:
            for one, other in combinations(self._parts(key), 2):
                pair = frozenset((*one.folders, *other.folders)), key[:2]
                if not equal_statistics(one, other):
                    differ.add(pair)
                    continue
                alike[pair].append(log_chance(one))
                if one.has_ids and other.has_ids and one.ids.in_common(other.ids) < one.newest.n:
                    refuted.add(key[:2])
        return {
            pair
            for pair, chances in alike.items()
            if pair not in differ and pair[1] not in refuted and are_copies(chances)
        }


def _specs(folders: Sequence[Merging]) -> list[CollectionSpec]:
    specs: dict[CollectionKey, CollectionSpec] = {}
    for folder in folders:
        for key, spec in folder.results.specs.items():
            before = specs.get(key, spec)
            others = before.window.slice, before.window.offset
            if before.device_digest != spec.device_digest or others != (spec.window.slice, spec.window.offset):
                cut = spec.window.splits(before.window)
                raise ResultsError(
                    f"{plain(folder.name)}: {key[0]} v{key[1]} has another device half, or another window, than in"
                    " the folders before it, so its counts cannot be added; "
                    + (cut or "merge it into a directory of its own")
                )
            specs[key] = spec
    return list(specs.values())


def _check_target(out: str, folders: Sequence[Merging]) -> None:
    record = _record(out)
    if record is not None:
        known = [each["path"] for each in json.loads(record)["folders"]]
        if known == [folder.described()["path"] for folder in folders]:
            return
        raise ResultsError(f"{plain(out)}: holds another merge; choose a new directory for --to, or remove it")
    if is_remote(out):
        if matching(f"{out.rstrip('/')}/**"):
            raise ResultsError(f"{plain(out)}: holds files; choose a new or empty directory for --to")
    elif Path(out).exists() and kind_of(Path(out)) is not Kind.EMPTY:
        raise ResultsError(f"{plain(out)}: holds {kind_of(Path(out))}; choose a new or empty directory for --to")


def _record(out: str) -> bytes | None:
    """Return the record of a merge, if there is one."""
    if not is_remote(out):
        path = Path(out, MERGED)
        return path.read_bytes() if path.exists() else None
    for found in matching(f"{out.rstrip('/')}/{MERGED}"):
        with fetched(found.path) as file:
            return file.read()
    return None


def _write(windows: _Windows, out: str, private: str) -> Merged:
    keep_specs(out, windows.specs)
    counts = StatisticsWriter(out, private)
    estimates = FilesWriter(out, PaneFiling(ESTIMATES))
    provenance: list[bytes] = []
    journal: list[bytes] = []
    proofs: dict[Proof, int] = defaultdict(int)
    reports = 0
    for part in windows:
        journal += map(line_of_pane, (*part.panes, *part.estimates))
        for pane in part.panes:
            counts.add(pane)
        for estimate in part.estimates:
            estimates.add(estimate)
        provenance.append(_provenance(part))
        proofs[part.proof] += 1
        reports += part.newest.n
    counts.finish()
    estimates.finish()
    write_journal(out, journal)
    write_file(f"{out.rstrip('/')}/{PROVENANCE}", b"".join(provenance))
    write_file(f"{out.rstrip('/')}/{MERGED}", record_of(windows.folders))
    return Merged(proofs, reports)


def _provenance(part: Part) -> bytes:
    """Return the line that says of a window which folders it is from."""
    pane = part.newest
    record = {
        "collection": pane.collection,
        "version": pane.version,
        "window_start": iso(pane.window_start),
        "window_end": iso(pane.window_end),
        "n": pane.n,
        "folders": list(part.folders),
        "proof": part.proof.value,
    }
    return json.dumps(record).encode() + b"\n"
