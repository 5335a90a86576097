"""How many windows publish less than they have counted, until enough reports have come; by how many stays unsaid."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from uldp.pipelines.results.newest import Current
from uldp.schemas.flags import Flag
from uldp.schemas.pane import PaneHeader, PaneKind
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec


def waiting(found: Current, specs: Mapping[CollectionKey, CollectionSpec]) -> Iterator[str]:
    """Yield a line for each collection and version with windows that have too few reports to publish more."""
    behind = {key for key, spec in specs.items() if spec.limits.min_reports > 1}
    few = [pane for pane in found.unpublished if not {Flag.FEW_REPORTS, Flag.FEW_AT_ENDS}.isdisjoint(pane.flags)]
    early = [pane for pane in found.estimates if pane.pane.kind is PaneKind.EARLY and pane.key[:2] in behind]
    ways = {
        "without an estimate": _windows(few),
        "open, whose early estimate is a step behind": _windows(early),
        "whose estimate leaves late reports out": _windows(found.held),
    }
    for collection, version in sorted({key for windows in ways.values() for key in windows}):
        counts = {way: windows[collection, version] for way, windows in ways.items()}
        texts = "; ".join(f"{n:,} {way}" for way, n in counts.items() if n)
        yield f"{collection} v{version}, windows that wait for more reports: {texts}"


def _windows(panes: Iterable[PaneHeader]) -> Counter[CollectionKey]:
    """Count the windows of panes by collection and version: several estimators have an estimate each."""
    return Counter(key[:2] for key in {pane.key for pane in panes})
