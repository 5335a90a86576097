"""The panes of windows that fire in a stream: what each publishes, and what it holds back."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from uldp.collector.firing import Firing
from uldp.collector.partial import Partial
from uldp.collector.published import History, Reports, differs, early_step, public, reports_of
from uldp.collector.sealing import WindowSum, p_values_of, seal
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Pane, PaneKind
from uldp.schemas.statistic import Statistic


class WindowPane(NamedTuple):
    """What a window that fires publishes: its pane, the sum, and the reports behind each table."""

    firing: Firing
    kind: PaneKind
    total: WindowSum
    reports: Reports

    @classmethod
    def of(cls, firing: Firing, waiting: dict[int, Partial]) -> "WindowPane | None":
        """Return what a firing publishes, if anything; ``waiting``, by slot, is brought up to date."""
        if firing.ended:
            waiting.pop(firing.slot, None)
            published, kind = firing.total, PaneKind.LATE if firing.past.closed else PaneKind.ON_TIME
        else:
            least = firing.served.spec.limits.min_reports
            step = early_step(firing.served.protocol.decoder, waiting.get(firing.slot), firing.total, least)
            if step.waiting is not None:
                waiting[firing.slot] = step.waiting
            if step.published is None:
                return None
            published, kind = step.published, PaneKind.EARLY
        reports = reports_of(firing.served.protocol.decoder, published)
        return cls(firing, kind, WindowSum.of(published, firing.start), reports)

    def seal(self, p_values: Mapping[Flag, float], flags: Iterable[Flag]) -> tuple[Statistic, History]:
        """Seal the pane with further flags, and return the history of the window with it."""
        served, start, past = self.firing.served, self.firing.start, self.firing.past
        least = served.spec.limits.min_reports
        sealed = seal(served, self.total, start, start + served.window_size, Pane(self.kind, past.panes), p_values)
        sealed = replace(sealed, flags=(*sealed.flags, *flags))
        exact = least == 1 or served.spec.window.exact_late
        if not exact and not differs(past.reports, self.reports, least, or_equals=True):
            held = replace(sealed, flags=(*sealed.flags, Flag.FEW_MORE), supersedes=past.held)
            return held, past.after_held(sealed.n)
        published = () if Flag.FEW_AT_ENDS in sealed.flags else public(self.reports, least)
        closed = self.kind is not PaneKind.EARLY
        return replace(sealed, supersedes=past.last), past.after(sealed.n, published, closed=closed)


def with_p_values(panes: Iterable[WindowPane]) -> Iterator[tuple[WindowPane, Mapping[Flag, float]]]:
    """Yield panes with their p-values, those of a protocol together: to test few takes as long as many."""
    alike: defaultdict[LdpProtocol, list[WindowPane]] = defaultdict(list)
    for pane in panes:
        alike[pane.firing.served.protocol].append(pane)
    for protocol, of_protocol in alike.items():
        p_values = p_values_of(protocol.decoder, [pane.total for pane in of_protocol])
        yield from zip(of_protocol, p_values, strict=True)
