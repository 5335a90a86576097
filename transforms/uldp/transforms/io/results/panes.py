"""Files of panes: of estimates, and of statistics."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.specs.collection import CollectionKey
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import container_bytes, encode_record
from uldp.transforms.io.results.filing import MAX_BYTES, MAX_RECORDS, File, Filing, Held
from uldp.transforms.io.results.names import estimate_name, file_of_all, shared_file, shared_folder, statistic_name
from uldp.transforms.io.results.signing import line_of_pane
from uldp.transforms.io.window_index import Place, place_of

#: If a bundle has more panes than this, of one collection and estimator, they share files; and so do those that are
#: left, of several collections. Bundles of small jobs have no more, so that their files are named by window. A file for
#: each of thousands of panes takes most of the time of a backfill, and most of the bytes of its results.
MAX_OWN_FILES = 32

#: A record of a pane.
P = TypeVar("P", bound=PaneHeader)
#: What panes share that may be in one file: a folder, and the ending of the file's name.
Shared = tuple[str, str]


class _Waiting(NamedTuple):
    """An encoded pane that waits for the end of its bundle.

    Attributes:
        name: The name of a file of its own; None if it has none, because it counts no report.
    """

    name: str | None
    of: CollectionKey
    place: Place
    encoded: bytes


class PaneFiling(Filing[P]):
    """Files panes by their windows, but those of a bundle together if it has many of them.

    So a sender that chooses event times has as many windows as it likes, but not as many files; and a thousand
    collections whose windows end together have one. All files are compressed: few reports leave equal figures for most
    values.

    Args:
        kind: The folder of the files, below that of results.
        schema: The name of the schema of a pane's record.
        name_of: Returns the name of the file of a pane.
        ending_of: Returns the ending of the name of a file that a pane may share.
        to_avro: Returns a pane's record.
        newest_only: Whether the file of a pane is removed once the pane that supersedes it is written. Panes of several
            collections then share none: it could not be removed.
    """

    def __init__(
        self,
        kind: str,
        schema: str,
        name_of: Callable[[P], str],
        ending_of: Callable[[P], str],
        to_avro: Callable[[P], Mapping[str, Any]],
        *,
        newest_only: bool,
    ) -> None:
        self._kind, self._schema, self._name_of, self._ending_of = kind, schema, name_of, ending_of
        self._to_avro, self._newest_only = to_avro, newest_only
        self._superseded: list[str] = []
        self._shared_panes: Held[tuple[Place, bytes]] = Held()
        self._panes: dict[Shared, int] = defaultdict(int)
        self._waiting: dict[Shared, list[_Waiting]] = defaultdict(list)
        self._waiting_panes = self._waiting_bytes = 0

    def add(self, pane: P) -> Iterator[File]:
        """Add a pane to a file of its own, or to one with other panes."""
        self.supersede(pane)
        encoded = encode_record(self._schema, self._to_avro(pane))
        if self._newest_only and pane.n and pane.pane.kind is PaneKind.EARLY:
            yield self._own_file(self._name_of(pane), encoded)
            return
        shared = shared_folder(self._kind, pane), self._ending_of(pane)
        name = self._name_of(pane) if pane.n else None
        yield from self._wait(shared, _Waiting(name, pane.key[:2], place_of(pane), encoded))

    def _wait(self, shared: Shared, pane: _Waiting) -> Iterator[File]:
        """Let a pane wait until the end of the bundle, or until the bundle has too many of them."""
        self._panes[shared] += pane.name is not None
        if self._panes[shared] > MAX_OWN_FILES:
            yield from self._share(shared, pane)
            for other in self._waiting.pop(shared, ()):
                self._waiting_panes -= 1
                self._waiting_bytes -= len(other.encoded)
                yield from self._share(shared, other)
            return
        self._waiting[shared].append(pane)
        self._waiting_panes += 1
        self._waiting_bytes += len(pane.encoded)
        if self._waiting_bytes >= MAX_BYTES or self._waiting_panes >= MAX_RECORDS:
            yield from self._files_of_waiting()

    def _share(self, shared: Shared, pane: _Waiting) -> Iterator[File]:
        """Add a pane to the next shared file of its collection; yield these files once their panes reach a limit."""
        if self._shared_panes.add(shared, (pane.place, pane.encoded), len(pane.encoded)):
            yield from self._shared_files()

    def _shared_files(self) -> Iterator[File]:
        """Yield a file for the panes of each folder and ending."""
        for (folder, ending), panes in self._shared_panes.clear().items():
            yield File(*shared_file(folder, panes, self._schema, ending))

    def _files_of_waiting(self) -> Iterator[File]:
        """Yield the files of the panes that wait: one of all of them if they are many and of several collections."""
        endings: dict[str, list[Shared]] = defaultdict(list)
        for shared in self._waiting:
            endings[shared[1]].append(shared)
        for ending, several in endings.items():
            panes = [pane for shared in several for pane in self._waiting[shared]]
            if len(several) > 1 and len(panes) > MAX_OWN_FILES and not self._newest_only:
                records = [(pane.of, pane.place, pane.encoded) for pane in panes]
                yield File(*file_of_all(self._kind, records, self._schema, ending))
                continue
            for shared in several:
                for pane in self._waiting[shared]:
                    if pane.name is None:
                        yield from self._share(shared, pane)
                    else:
                        yield self._own_file(pane.name, pane.encoded)
        self._waiting.clear()
        self._waiting_panes = self._waiting_bytes = 0

    def _own_file(self, name: str, encoded: bytes) -> File:
        return File(name, container_bytes(self._schema, [encoded], deflated=True))

    def rest(self) -> Iterator[File]:
        """Yield the files of all panes that wait."""
        yield from self._files_of_waiting()
        yield from self._shared_files()

    def supersede(self, pane: P) -> None:
        """Note the file of the pane before, if no pane but the newest is to stay.

        Of all earlier revisions it is that one alone: this run has written it. A file of another revision may be of an
        earlier run of the job, and of a newer pane.
        """
        if self._newest_only and pane.supersedes is not None:
            before = replace(pane, pane=replace(pane.pane, revision=pane.supersedes.revision))
            self._superseded.append(self._name_of(before))

    def superseded(self) -> Sequence[str]:
        """Return the names of the files that the panes supersede."""
        return self._superseded

    def line_of(self, pane: P) -> bytes:
        """Return the line of a pane."""
        return line_of_pane(pane)


def filed_estimates(*, newest_only: bool = False) -> PaneFiling[Estimate]:
    """Return the filing of estimates."""
    return PaneFiling(
        "estimates", "estimate", estimate_name, _ending_of_estimate, Estimate.to_avro, newest_only=newest_only
    )


def _ending_of_estimate(estimate: Estimate) -> str:
    return f".{estimate.estimator}.avro"


def filed_cells(kind: str, *, newest_only: bool = False) -> PaneFiling[PaneHeader]:
    """Return the filing of statistics, or of headers alone, below the folder of a kind: ``COUNTS`` or ``FEW``."""
    name_of = partial(statistic_name, kind=kind)
    return PaneFiling(kind, "statistic", name_of, _ending_of_cells, counts_to_avro, newest_only=newest_only)


def _ending_of_cells(_: PaneHeader) -> str:
    return ".avro"
