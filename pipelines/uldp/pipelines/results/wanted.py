"""Which panes of a file a reader wants: blocks without one of them are not read, if the file has an index."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from uldp.transforms.io.window_index import Place


@dataclass(frozen=True)
class Wanted:
    """The panes of one collection or of all, from a window on.

    Attributes:
        collection: The name of the collection; None for all of the file.
        first: Panes of windows before this one are not wanted; None for all windows.
        firsts: The same for some collections of a file of several, in place of ``first``.
    """

    collection: str | None = None
    first: Place | None = None
    firsts: Mapping[str, Place] = field(default_factory=dict)

    def has(self, collection: str | None, place: Place) -> bool:
        """Return whether a pane is wanted; of an unknown collection, whether it may be."""
        if collection is None:
            return self.first is None or place >= self.first
        if self.collection not in (None, collection):
            return False
        first = self.firsts.get(collection, self.first)
        return first is None or place >= first


#: All panes.
ALL_PANES = Wanted()
