"""The filing of panes: how those of a bundle are divided into files."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneKind
from uldp.transforms.io.results.filing import MAX_BYTES, File, Filing
from uldp.transforms.io.results.pane_files import MAX_PANES, EncodedPane, P, PaneFolder, name_of_pane, pane_files
from uldp.transforms.io.results.signing import line_of_pane

#: At most so many panes of a bundle have files of their own, if the file of a pane is to be removed later.
_MAX_OWN_FILES = 32


class PaneFiling(Filing[P]):
    """Files the panes of a bundle together, of all collections and windows, those of one estimator in a file.

    So a sender that chooses event times has as many windows as it likes, but not as many files. If ``newest_only``, a
    pane's file is removed once a newer one is written, and each has its own but in bundles of many.
    """

    def __init__(self, folder: PaneFolder[P], *, newest_only: bool = False) -> None:
        self._folder, self._newest_only = folder, newest_only
        self._superseded: list[str] = []
        self._held: dict[str | None, list[EncodedPane]] = defaultdict(list)
        self._panes = self._nbytes = 0

    def add(self, pane: P) -> Iterator[File]:
        self.supersede(pane)
        encoded = EncodedPane.encode(self._folder, pane)
        estimator = pane.estimator if isinstance(pane, Estimate) else None
        if self._newest_only and pane.n and pane.pane.kind is PaneKind.EARLY:
            yield from pane_files(self._folder, [encoded], estimator)
            return
        self._held[estimator].append(encoded)
        self._panes += 1
        self._nbytes += len(encoded.record) + len(encoded.bare)
        if self._panes >= MAX_PANES or self._nbytes >= MAX_BYTES:
            yield from self.rest()

    def rest(self) -> Iterator[File]:
        for estimator, panes in self._held.items():
            own = self._newest_only and len(panes) <= _MAX_OWN_FILES
            for together in [[pane] for pane in panes] if own else [panes]:
                yield from pane_files(self._folder, together, estimator)
        self._held.clear()
        self._panes = self._nbytes = 0

    def supersede(self, pane: P) -> None:
        """Note the file of the pane before, which this run has written, if no pane but the newest is to stay."""
        if self._newest_only and pane.supersedes is not None:
            self._superseded.append(name_of_pane(self._folder, pane, pane.supersedes.revision))

    def superseded(self) -> Sequence[str]:
        return self._superseded

    def line_of(self, pane: P) -> bytes:
        return line_of_pane(pane)
