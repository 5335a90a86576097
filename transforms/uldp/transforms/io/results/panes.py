"""The filing of panes: how those of a bundle are divided into files."""

from collections.abc import Iterator, Sequence

from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneKind
from uldp.transforms.io.results.filing import File, Filing
from uldp.transforms.io.results.pane_files import EncodedPane, P, PaneFolder, name_of_pane, pane_files
from uldp.transforms.io.results.signing import line_of_pane

#: At most so many panes of a bundle have files of their own, if the file of a pane is to be removed later.
_MAX_OWN_FILES = 32


class PaneFiling(Filing[P, EncodedPane]):
    """Files the panes of a bundle together, of all collections and windows, those of one estimator in a file.

    So a sender that chooses event times has as many windows as it likes, but not as many files. If ``newest_only``, a
    pane's file is removed once a newer one is written, and each has its own but in bundles of many.
    """

    def __init__(self, folder: PaneFolder[P], *, newest_only: bool = False) -> None:
        super().__init__()
        self._folder, self._newest_only = folder, newest_only
        self._superseded: list[str] = []

    def add(self, pane: P) -> Iterator[File]:
        self.supersede(pane)
        encoded = EncodedPane.encode(self._folder, pane)
        estimator = pane.estimator if isinstance(pane, Estimate) else None
        if self._newest_only and pane.n and pane.pane.kind is PaneKind.EARLY:
            yield from pane_files(self._folder, [encoded], estimator)
        else:
            yield from self.hold(estimator, encoded, len(encoded.record) + len(encoded.bare))

    def files_of(self, estimator: str | None, panes: Sequence[EncodedPane]) -> Iterator[File]:
        own = self._newest_only and len(panes) <= _MAX_OWN_FILES
        for together in [[pane] for pane in panes] if own else [panes]:
            yield from pane_files(self._folder, together, estimator)

    def supersede(self, pane: P) -> None:
        """Note the file of the pane before, which this run has written, if no pane but the newest is to stay."""
        if self._newest_only and pane.supersedes is not None:
            self._superseded.append(name_of_pane(self._folder, pane, pane.supersedes.revision))

    def superseded(self) -> Sequence[str]:
        return self._superseded

    def line_of(self, pane: P) -> bytes:
        return line_of_pane(pane)
