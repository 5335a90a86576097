"""What a place of rows of estimates lacks of the newest estimates of results, because it was lost or set back."""

from collections.abc import Iterator
from dataclasses import dataclass

from uldp.pipelines.results.folder import Published, ResultsFolder
from uldp.pipelines.results.selection import Key
from uldp.transforms.io.row_sink import KeptPane, Made, RowSink


@dataclass(frozen=True)
class Lacking:
    """The newest estimates that a place lacks."""

    windows: list[Key]  # their windows
    strange: int  # the number of windows of the same collections and versions that the place has and the results lack
    _folder: ResultsFolder
    _estimates: Published

    @classmethod
    def of(cls, sink: RowSink, folder: ResultsFolder) -> "Lacking | None":
        """Ask a place; None if it cannot be asked; EndpointError if it does not answer, ResultsError without specs."""
        panes = sink.panes()
        if panes is None:
            return None
        found = folder.published()  # before the place is asked, which may get rows meanwhile
        wanted = {_place(KeptPane.of(header)): header for header in found.headers}
        known = {window for window, *_ in wanted}
        mine = {f"{collection}-v{version}" for collection, version in folder.specs}
        strange: set[str] = set()
        for pane in panes:
            header = wanted.get(_place(pane))
            if header is not None and pane.age >= header.age_text:
                del wanted[_place(pane)]
            elif pane.window not in known and pane.window.partition("/")[0] in mine:
                strange.add(pane.window)
        lacking = list(wanted.values())
        return cls(sorted({header.key for header in lacking}), len(strange), folder, found.only(lacking))

    def __iter__(self) -> Iterator[Made]:
        """Read the estimates, each with its spec."""
        return self._folder.with_specs(self._estimates)


def _place(pane: KeptPane) -> tuple[str, str, str]:
    return pane.window, pane.device_digest, pane.estimator
