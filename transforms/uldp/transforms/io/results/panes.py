"""Files of panes: of estimates, and of statistics."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import container_bytes, encode_record
from uldp.transforms.io.results.filing import MAX_BYTES, File, Filing, Held
from uldp.transforms.io.results.names import estimate_name, shared_file, shared_folder, statistic_name
from uldp.transforms.io.window_index import Place, place_of

#: If a bundle has more panes than this, of one collection and estimator, they share files. Bundles of streams and of
#: small backfills have no more, so that their files are named by window. A file for each of thousands of panes takes
#: most of the time of a backfill, and most of the bytes of its results.
MAX_OWN_FILES = 32

#: A record of a pane.
P = TypeVar("P", bound=PaneHeader)
#: What panes share that may be in one file: a folder, and the ending of the file's name.
Shared = tuple[str, str]


class PaneFiling(Filing[P]):
    """Files panes by their windows, but those of a collection together if a bundle has many of them.

    So a sender that chooses event times has as many windows as it likes, but not as many files. All files are
    compressed: few reports leave equal figures for most values.

    Args:
        schema: The name of the schema of a pane's record.
        name_of: Returns the name of the file of a pane.
        shared: Returns the folder and the ending of the file that a pane may share.
        to_avro: Returns a pane's record.
        newest_only: Whether the file of a pane is removed once the pane that supersedes it is written.
    """

    def __init__(
        self,
        schema: str,
        name_of: Callable[[P], str],
        shared: Callable[[P], Shared],
        to_avro: Callable[[P], Mapping[str, Any]],
        *,
        newest_only: bool,
    ) -> None:
        self._schema, self._name_of, self._shared, self._to_avro = schema, name_of, shared, to_avro
        self._newest_only = newest_only
        self._superseded: list[str] = []
        self._shared_panes: Held[tuple[Place, bytes]] = Held()
        self._panes: dict[Shared, int] = defaultdict(int)
        self._waiting: dict[Shared, list[tuple[str, Place, bytes]]] = defaultdict(list)
        self._waiting_bytes = 0

    def add(self, pane: P) -> Iterator[File]:
        """Add a pane to a file of its own, or to one with other panes."""
        self.supersede(pane)
        shared, place = self._shared(pane), place_of(pane)
        encoded = encode_record(self._schema, self._to_avro(pane))
        # A job that is stopped replaces early panes, and so has to find their files.
        if not pane.n:
            yield from self._share(shared, place, encoded)
        elif pane.pane.kind is PaneKind.EARLY:
            yield File(self._name_of(pane), container_bytes(self._schema, [encoded], deflated=True))
        else:
            yield from self._wait(pane, shared, place, encoded)

    def _wait(self, pane: P, shared: Shared, place: Place, encoded: bytes) -> Iterator[File]:
        """Let a pane wait until the end of the bundle, or until the bundle has too many of them."""
        self._panes[shared] += 1
        if self._panes[shared] > MAX_OWN_FILES:
            yield from self._share(shared, place, encoded)
        else:
            self._waiting[shared].append((self._name_of(pane), place, encoded))
            self._waiting_bytes += len(encoded)
        if self._panes[shared] == MAX_OWN_FILES + 1:
            for _, other, waiting in self._waiting.pop(shared, ()):
                self._waiting_bytes -= len(waiting)
                yield from self._share(shared, other, waiting)
        elif self._waiting_bytes >= MAX_BYTES:
            yield from self._own_files()

    def _share(self, shared: Shared, place: Place, encoded: bytes) -> Iterator[File]:
        """Let a pane share a file, and yield the shared files once their panes reach a limit."""
        if self._shared_panes.add(shared, (place, encoded), len(encoded)):
            yield from self._shared_files()

    def _shared_files(self) -> Iterator[File]:
        """Yield a file for the panes of each folder and ending."""
        for (folder, ending), panes in self._shared_panes.clear().items():
            yield File(*shared_file(folder, panes, self._schema, ending))

    def _own_files(self) -> Iterator[File]:
        """Yield a file for each pane that waits."""
        while self._waiting:
            for name, _, encoded in self._waiting.popitem()[1]:
                yield File(name, container_bytes(self._schema, [encoded], deflated=True))
        self._waiting_bytes = 0

    def rest(self) -> Iterator[File]:
        """Yield the files of all panes that wait."""
        yield from self._own_files()
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


def filed_estimates(*, newest_only: bool = False) -> PaneFiling[Estimate]:
    """Return the filing of estimates."""
    return PaneFiling("estimate", estimate_name, _shared_estimate, Estimate.to_avro, newest_only=newest_only)


def _shared_estimate(estimate: Estimate) -> Shared:
    return shared_folder("estimates", estimate), f".{estimate.estimator}.avro"


def filed_cells(kind: str, *, newest_only: bool = False) -> PaneFiling[PaneHeader]:
    """Return the filing of statistics, or of headers alone, below the folder of a kind: ``COUNTS`` or ``FEW``."""
    name_of, shared = partial(statistic_name, kind=kind), partial(_shared_cells, kind)
    return PaneFiling("statistic", name_of, shared, counts_to_avro, newest_only=newest_only)


def _shared_cells(kind: str, pane: PaneHeader) -> Shared:
    return shared_folder(kind, pane), ".avro"
