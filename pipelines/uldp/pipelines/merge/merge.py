"""Merge folders of results into one, in which each report is counted once.

A window of one folder is taken as it is. Windows that several folders have are joined if they are copies, or if the ids
of their reports show that they have none in common, or that one has all of the others'. Otherwise nothing is written:
sums of what may overlap would count reports twice.

The record of a merge is in two files: ``merged.json`` names the folders, and ``provenance.jsonl`` says of each window
which folders it is from, and why each of its reports is counted once. Late and rejected reports stay where they are.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.outputs import keep_specs
from uldp.pipelines.merge.folders import Merging, folders_to_merge, ids_of, record_of, slices_of
from uldp.pipelines.merge.joining import UnprovedError, join
from uldp.pipelines.merge.part import Part, Proof, are_copies, equal_statistics
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.panes import PaneRecord
from uldp.pipelines.results.selection import Key
from uldp.pipelines.results.text import number_of
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.durations import milliseconds
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file
from uldp.transforms.io.folders import COUNTS, FEW, Kind, kind_of
from uldp.transforms.io.results.panes import filed_cells, filed_estimates
from uldp.transforms.io.results.write import FilesWriter

#: The file that names the folders of a merge, and that of what each window is from.
MERGED, PROVENANCE = "merged.json", "provenance.jsonl"


@dataclass(frozen=True)
class Merged:
    """What a merge has written.

    Attributes:
        windows: The number of windows, by why each of their reports is counted once.
        reports: The number of counted reports.
    """

    windows: Mapping[Proof, int]
    reports: int

    def __str__(self) -> str:
        of = "; ".join(f"of {number:,} {proof}" for proof, number in self.windows.items())
        return f"{number_of(sum(self.windows.values()), 'window')} of {self.reports:,} reports: {of}"


def merge(paths: Sequence[Path], out: Path, *, private: Sequence[Path] = (), private_to: Path | None = None) -> Merged:
    """Merge folders into ``out``. The same merge again writes the same files.

    Args:
        paths: Two folders of results or more. If their specs differ in what the collector alone uses, the last counts.
        out: A new directory, or one of the same merge.
        private: Folders of ``--private-to`` of their jobs, which hold ids and cells of few reports.
        private_to: Another directory for cells of few reports.

    Raises:
        ResultsError: if a folder is damaged, two cannot be merged, or ``out`` holds something else. Nothing is written
            then.
    """
    folders = folders_to_merge(paths, private)
    specs = _specs(folders)
    _check_target(out, folders)
    served = SharedSpecs(specs).served
    found = _parts(folders, {spec.key: milliseconds(spec.window.slice) for spec in specs})
    copies = _copies(found)
    joined: list[Part] = []
    unproved: list[str] = []
    for key, parts in sorted(found.items()):
        total = parts[0]
        for part in parts[1:]:
            before = [folders[number] for number in total.folders]
            late = any(folders[part.folders[0]].is_of_late(each) for each in before)
            try:
                copied = (total.folders[0], part.folders[0], key[:2]) in copies
                total = join(total, part, served[key[:2]], copies=copied, late=late)
            except UnprovedError as error:
                names = [plain(str(folders[each.folders[-1]].path)) for each in (total, part)]
                window = f"the window of {key[0]} v{key[1]} from {iso(key[2])}"
                unproved.append(f"{' and '.join(names)} both have {window}, and {error}")
                break
        joined.append(total)
    if unproved:
        more = f" (and {len(unproved) - 1:,} windows more)" if len(unproved) > 1 else ""
        raise ResultsError(f"{unproved[0]}{more}")
    _write(joined, out, private_to or out, specs, folders)
    return _summary(joined)


def _specs(folders: Sequence[Merging]) -> list[CollectionSpec]:
    specs: dict[CollectionKey, CollectionSpec] = {}
    for folder in folders:
        for key, spec in folder.results.specs.items():
            before = specs.get(key, spec)
            others = before.window.slice, before.window.offset
            if before.device_digest != spec.device_digest or others != (spec.window.slice, spec.window.offset):
                raise ResultsError(
                    f"{plain(str(folder.path))}: {key[0]} v{key[1]} has another device half, or another window, than in"
                    " the folders before it, so its counts cannot be added; merge it into a directory of its own"
                )
            specs[key] = spec
    return list(specs.values())


def _check_target(out: Path, folders: Sequence[Merging]) -> None:
    record = out / MERGED
    if record.exists():
        known = [each["path"] for each in json.loads(record.read_bytes())["folders"]]
        if known == [folder.described()["path"] for folder in folders]:
            return
        raise ResultsError(f"{plain(str(out))}: holds another merge; choose a new directory for --to, or remove it")
    if out.exists() and kind_of(out) is not Kind.EMPTY:
        raise ResultsError(f"{plain(str(out))}: holds {kind_of(out)}; choose a new or empty directory for --to")


def _parts(folders: Sequence[Merging], sizes: Mapping[CollectionKey, int]) -> dict[Key, list[Part]]:
    """Read what each folder has of each window, and the ids of those that several folders have."""
    panes: list[dict[Key, list[PaneHeader]]] = []
    estimates: list[dict[Key, list[Estimate]]] = []
    for folder in folders:
        panes.append(_by_window(folder.panes(), sizes, folder))
        estimates.append(_by_window(folder.estimates(), sizes, folder))
        folder.check_all(pane for each in (panes[-1], estimates[-1]) for fired in each.values() for pane in fired)
    having: dict[Key, list[int]] = defaultdict(list)
    for number, of_folder in enumerate(panes):
        for key in of_folder:
            having[key].append(number)
    shared = slices_of((key for key, numbers in having.items() if len(numbers) > 1), sizes)
    found: dict[Key, list[Part]] = defaultdict(list)
    for number, folder in enumerate(folders):
        ids = folder.ids(shared) if shared else {}
        folder.check_cells(
            pane for key, fired in panes[number].items() if len(having[key]) > 1 for pane in newest(fired)
        )
        for key, fired in panes[number].items():
            own = ids_of(key, sizes[key[:2]], ids) if len(having[key]) > 1 else None
            part = Part.of(number, fired, estimates[number].get(key, ()), None)
            if own is not None and len(own) == part.newest.n:  # otherwise the folder lacks ids
                part = Part.of(number, fired, estimates[number].get(key, ()), own)
            found[key].append(part)
    return found


def _by_window(
    panes: Iterable[PaneRecord], known: Mapping[CollectionKey, int], folder: Merging
) -> dict[Key, list[PaneRecord]]:
    found: dict[Key, list[PaneRecord]] = defaultdict(list)
    for pane in panes:
        if pane.key[:2] not in known:
            raise ResultsError(f"{plain(str(folder.path))}: has no spec of {pane.collection} v{pane.version}")
        found[pane.key].append(pane)
    return found


def _copies(found: Mapping[Key, Sequence[Part]]) -> set[tuple[int, int, CollectionKey]]:
    """Return the pairs of folders whose windows of a version are all equal; see ``are_copies``."""
    alike: dict[tuple[int, int, CollectionKey], list[Part]] = defaultdict(list)
    differ = set()
    for key, parts in found.items():
        for at, one in enumerate(parts):
            for other in parts[at + 1 :]:
                pair = one.folders[0], other.folders[0], key[:2]
                if equal_statistics(one, other):
                    alike[pair].append(one)
                else:
                    differ.add(pair)
    return {pair for pair, windows in alike.items() if pair not in differ and are_copies(windows)}


def _write(
    joined: Sequence[Part], out: Path, private: Path, specs: Sequence[CollectionSpec], folders: Sequence[Merging]
) -> None:
    keep_specs(str(out), specs)
    counts, few = FilesWriter(str(out), filed_cells(COUNTS)), FilesWriter(str(private), filed_cells(FEW), private=True)
    estimates = FilesWriter(str(out), filed_estimates())
    for part in joined:
        for pane in part.panes:
            if not pane.apart:
                counts.add(pane)
                continue
            counts.add(PaneHeader(**pane.header()))
            if isinstance(pane, Statistic):
                few.add(pane)
        for estimate in part.estimates:
            estimates.add(estimate)
    for writer in (counts, few, estimates):
        writer.finish()
    write_file(str(out / PROVENANCE), b"".join(_provenance(joined)))
    write_file(str(out / MERGED), record_of(folders))


def _provenance(joined: Sequence[Part]) -> Iterator[bytes]:
    for part in joined:
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
        yield json.dumps(record).encode() + b"\n"


def _summary(joined: Sequence[Part]) -> Merged:
    windows: dict[Proof, int] = defaultdict(int)
    for part in joined:
        windows[part.proof] += 1
    return Merged(windows, sum(part.newest.n for part in joined))
