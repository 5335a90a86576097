"""Figures of results folders and positions of their jobs, in the text format of Prometheus."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from uldp.pipelines.live.figures import CollectionFigures
from uldp.pipelines.live.position import Position, now_ms
from uldp.pipelines.live.served import Served

#: The type of what ``Exposition.text`` returns.
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_VERSION = ("collection", "version")
#: Each metric, whether it is a counter, its labels behind ``results``, and what it means. Names are stable.
METRICS: dict[str, tuple[bool, tuple[str, ...], str]] = {
    "uldp_reports": (
        True,
        (*_VERSION, "outcome"),
        "Reports of windows by outcome: counted, duplicate, late or rejected. Their sum is what was received.",
    ),
    "uldp_rejected_reports": (True, ("reason",), "Rejected reports by reason, those of no window included."),
    "uldp_missing_messages": (True, (), "Messages that the source lost before they could be read; an upper bound."),
    "uldp_panes": (True, _VERSION, "Panes that were written."),
    "uldp_windows": (True, _VERSION, "Windows that have fired."),
    "uldp_flagged_windows": (False, (*_VERSION, "flag"), "Windows whose newest pane has a flag."),
    "uldp_last_pane_timestamp_seconds": (False, _VERSION, "When a pane was last written."),
    "uldp_last_window_end_timestamp_seconds": (False, _VERSION, "The end of the last window that has fired on time."),
    "uldp_last_window_reports": (False, _VERSION, "Reports that this window counted."),
    "uldp_last_window_rejected_ratio": (False, _VERSION, "The share of the reports of this window that was rejected."),
    "uldp_last_window_missing_ratio": (
        False,
        _VERSION,
        "The share of the reports of this window that may be missing; an upper bound.",
    ),
    "uldp_damaged_files": (False, (), "Damaged files of counts, whose panes no metric has."),
    "uldp_job_running": (False, (), "1 while a job on this machine writes to the results, 0 otherwise."),
    "uldp_watermark_timestamp_seconds": (False, (), "The watermark of the job that follows a local stream."),
    "uldp_watermark_lag_seconds": (False, (), "By how much this watermark is behind the clock."),
    "uldp_segments_ahead": (False, (), "Segments that are there and that this job has not begun to read."),
    "uldp_spec_refused": (False, (), "Files of specs that this job refuses as they are now; its log names them."),
    "uldp_messages_read": (True, (), "Messages that this job has read since it began, those that it reads again too."),
}
_OF_RESULTS = {name: (counts, ("results", *labels), text) for name, (counts, labels, text) in METRICS.items()}
Samples = Iterator[tuple[str, tuple[str, ...], float]]


def exposed(metrics: Mapping[str, tuple[bool, tuple[str, ...], str]], samples: Samples) -> bytes:
    """Return samples in Prometheus' text format; of a metric, whether it is a counter, its labels, and its meaning."""
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for name, (counts, labels, meaning) in metrics.items():
        families[name] = (CounterMetricFamily if counts else GaugeMetricFamily)(name, meaning, labels=labels)
    for name, labels, value in samples:
        families[name].add_metric(labels, value)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([family for family in families.values() if family.samples]))
    return generate_latest(registry)


class Exposition:
    """The metrics of results folders, with position and state of their jobs; may be used by several threads.

    No counter falls while the process runs, also if files are removed. After a restart, it counts what is there.
    """

    def __init__(
        self,
        folders: Sequence[Served],
        position: Callable[[Served], Position | None],
        running: Callable[[Served], bool],
    ) -> None:
        self._folders, self._position, self._running = folders, position, running
        self._lock = threading.Lock()
        self._most: dict[tuple[str, tuple[str, ...]], float] = {}

    def text(self) -> bytes:
        """Return the metrics as they are now."""
        with self._lock:
            return exposed(_OF_RESULTS, self._all_samples())

    def _all_samples(self) -> Samples:
        for served in self._folders:
            for name, labels, value in self._samples(served):
                of = (served.name, *labels)
                if METRICS[name][0]:
                    value = self._most[name, of] = max(self._most.get((name, of), 0), value)
                yield name, of, value

    def _samples(self, served: Served) -> Samples:
        figures = served.figures.now()
        for (collection, version), each in figures.collections.items():
            yield from _of_collection((collection, str(version)), each)
        for reason, reports in figures.rejected.items():
            yield "uldp_rejected_reports", (reason,), reports
        yield "uldp_missing_messages", (), figures.missing
        yield "uldp_damaged_files", (), figures.damaged
        yield "uldp_job_running", (), self._running(served)
        position = self._position(served)
        if position is not None:
            yield from _of_position(position, now_ms())


def _of_collection(key: tuple[str, str], figures: CollectionFigures) -> Samples:
    accounting = figures.accounting.to_avro()
    for outcome in ("counted", "duplicate", "late", "rejected"):
        yield "uldp_reports", (*key, outcome), accounting[outcome]
    yield "uldp_panes", key, figures.panes
    yield "uldp_windows", key, figures.windows
    for flag, windows in sorted(figures.flagged.items()):
        yield "uldp_flagged_windows", (*key, flag), windows
    yield "uldp_last_pane_timestamp_seconds", key, figures.written
    yield "uldp_last_window_end_timestamp_seconds", key, figures.last.window_end / 1000
    yield "uldp_last_window_reports", key, figures.last.n
    yield "uldp_last_window_rejected_ratio", key, figures.rejected_share
    yield "uldp_last_window_missing_ratio", key, figures.missing_share


def _of_position(position: Position, now: int) -> Samples:
    if position.watermark is not None:
        yield "uldp_watermark_timestamp_seconds", (), position.watermark / 1000
    lag = position.lag(now)
    if lag is not None:
        yield "uldp_watermark_lag_seconds", (), lag / 1000
    yield "uldp_segments_ahead", (), position.ahead
    yield "uldp_spec_refused", (), position.spec_refused
    yield "uldp_messages_read", (), position.messages


class _Collected(Collector):
    """What was collected already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
