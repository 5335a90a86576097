"""A collection spec, with the values that the stages derive from it."""

import hashlib
import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np

from uldp.collector.repeats import CELLS, Sketched
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Mask, Times
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.durations import milliseconds, milliseconds_of
from uldp.schemas.specs.window import AnyTime

#: Late reports can amend a window's accounting for this long after the window closes.
AMENDABLE_FOR = timedelta(days=1)

#: State is held for this much longer, so that nothing is dropped if the watermark is this far ahead of a publish time.
_SPARE = timedelta(hours=1)

#: Upper bound of event and publish times, exclusive, in milliseconds since 1970. The text of times has years of four
#: digits, and a window may end ``MAX_WINDOW``, almost a thousand years, after the times that it holds.
YEAR_9000 = 221_845_392_000_000
#: A span has up to so many time slices: more save little, and leave fewer spans that workers can share. If it has
#: several, it has up to so many cells, because sums copy them.
_MOST_SLICES, BLOCK_CELLS = 8, 1 << 16
#: While an id is remembered, a job forgets ids so many times.
_LOTS = 4


@dataclass(frozen=True, eq=False)
class ServedCollection:
    """A spec, its protocol, and what stages derive from it; ``twin`` is the first of the same facts, or None."""

    spec: CollectionSpec
    protocol: LdpProtocol
    twin: "ServedCollection | None" = None

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of its reports."""
        return self.protocol.mechanism

    @cached_property
    def sketched(self) -> Sketched | None:
        """Which payloads are in the sketch of a window; None without a sketch. See ``uldp.collector.repeats``."""
        return Sketched.of(self.mechanism)

    @cached_property
    def device_digest(self) -> str:
        """See ``CollectionSpec.device_digest``; cached, because each pane needs it."""
        return self.spec.device_digest if self.twin is None else self.twin.device_digest

    @cached_property
    def number(self) -> int:
        """A number by which the state of a stream knows the collection and version: 62 bits of a digest.

        With a time in milliseconds, it is less than 2^63. Two of a million collections have the same number in one job
        of ten million.
        """
        name = f"{self.spec.collection} {self.spec.version}"
        return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") >> 2

    @cached_property
    def rules(self) -> str:
        """Text that is equal if reports can be judged together: models take longer to compare."""
        spec = self.spec
        return f"{self.device_digest} {spec.window!r} {spec.event_time} {self.closes} {self._age_and_skew}"

    @cached_property
    def opens(self) -> int:
        """The first publish time, in milliseconds, of reports that are known."""
        return 0 if self.spec.opens is None else milliseconds_of(self.spec.opens)

    @cached_property
    def closes(self) -> int:
        """The first publish time, in milliseconds, of reports that are rejected because the version is retired."""
        if self.spec.retired:
            return 0
        return YEAR_9000 if self.spec.closes is None else milliseconds_of(self.spec.closes)

    @cached_property
    def window_size(self) -> int:
        """Length of a window in milliseconds."""
        return milliseconds(self.spec.window.size)

    @cached_property
    def slice_size(self) -> int:
        """Length of a time slice in milliseconds; see ``ReportColumns.slices``."""
        return milliseconds(self.spec.window.slice)

    @cached_property
    def early_every(self) -> int | None:
        """Milliseconds between two early panes of a window; None if it has none."""
        every = self.spec.window.early_every
        return None if every is None else milliseconds(every)

    @cached_property
    def offset(self) -> int:
        """Milliseconds by which slices, and so windows, begin later than at multiples of their size since 1970."""
        return milliseconds(self.spec.window.offset)

    @cached_property
    def slice_cells(self) -> int:
        """The cells of a time slice: of its statistic, and of the sketch of its payloads."""
        return self.mechanism.statistic_size + CELLS * (self.sketched is not None)

    @cached_property
    def span_size(self) -> int:
        """Milliseconds of the spans of time slices that a bounded job sums together; see ``Partial``."""
        return self.slice_size * max(1, min(_MOST_SLICES, BLOCK_CELLS // self.slice_cells))

    @cached_property
    def alike(self) -> str:
        """Names what collections have in common whose windows may share keys of a stream; see ``WindowKeys``.

        The size, the period (0 if the windows are fixed) and the offset of windows in milliseconds, the cells of a
        statistic, and whether there are sketches.
        """
        period = 0 if self.spec.window.period is None else self.slice_size
        of = self.window_size, period, self.offset, self.mechanism.statistic_size, int(self.sketched is not None)
        return " ".join(map(str, of))

    @cached_property
    def closes_after(self) -> int:
        """Milliseconds from a slice's start to the closing of the last window that holds it."""
        return milliseconds(self.spec.window.size + self.spec.window.allowed_lateness)

    @cached_property
    def amendable_for(self) -> int:
        """Milliseconds from a slice's start during which late reports can amend the accounting of all its windows."""
        return self.closes_after + milliseconds(AMENDABLE_FOR)

    @cached_property
    def sender_cap(self) -> int | None:
        """The reports of one sender that a time slice counts at most; None if any number.

        The slices of a window have equal parts of its limit. So no window counts more, and what a slice counts depends
        on its own reports alone: not on the order in which reports of several slices come.
        """
        limits, window = self.spec.limits, self.spec.window
        if not limits.cap_senders or limits.max_reports_per_sender is None:
            return None
        return limits.max_reports_per_sender // (window.size // window.slice)

    @cached_property
    def remembered_for(self) -> int:
        """Milliseconds from a slice's start until no window of it, or of a copy's, is open."""
        return self.closes_after + self.window_size - self.slice_size

    def forgotten_at(self, slices: Times) -> Times:
        """Return the times, in milliseconds, at which a job forgets the ids of slices, which it does for many together.

        An id is looked up in a set for each of these times that is to come. So there are five at the most: an id is
        remembered by up to a quarter longer than it needs, if a window and its lateness are more than four slices.
        """
        together = self.slice_size * -(-self.remembered_for // (self.slice_size * _LOTS))
        if together > self.slice_size:
            slices = -((self.offset - slices) // together) * together + self.offset
        return slices + self.remembered_for

    @cached_property
    def held_for(self) -> int:
        """Milliseconds from a window's end until a stream frees its state, with the late reports'."""
        # A slice of a sliding window can be counted until the last window that holds it closes.
        sliding = self.window_size if self.spec.window.period is not None else 0
        return milliseconds(self.spec.window.allowed_lateness + AMENDABLE_FOR + _SPARE) + sliding

    @cached_property
    def sealed_after(self) -> int:
        """Milliseconds from a window's start until no report changes its counts or its accounting any more."""
        return self.window_size - self.slice_size + self.amendable_for

    @cached_property
    def reach(self) -> int:
        """Milliseconds before the watermark, in which all messages were published that a window not yet sealed needs.

        The reports of such a window were published after its start, or before by up to the largest clock skew. When
        the first of them came, the job remembered ids of reports that were published earlier still.
        """
        _, skew = self._age_and_skew
        return self.sealed_after + skew + self.remembered_for + skew

    def event_times(self, published: Times) -> tuple[Times, Times]:
        """Return the earliest and latest event times, in milliseconds, that reports may claim, by publish time."""
        age, skew = self._age_and_skew
        return np.maximum(published - age, 0), np.minimum(published + skew, YEAR_9000 - 1)

    @cached_property
    def _age_and_skew(self) -> tuple[int, int]:
        """The largest age and the largest clock skew of a report, in milliseconds."""
        return milliseconds(self.spec.max_age), milliseconds(self.spec.limits.max_clock_skew)

    def admits(self, times: Times, published: Times) -> Mask:
        """Return which of one or more reports have an event time that their publish time admits."""
        # Both bounds grow with the publish time. Usually all event times are within the tightest bounds.
        age, skew = self._age_and_skew
        after, before = max(int(published.max()) - age, 0), min(int(published.min()) + skew, YEAR_9000 - 1)
        if after <= times.min() and times.max() <= before:
            return np.ones(len(times), dtype=np.bool_)
        earliest, latest = self.event_times(published)
        return (times >= earliest) & (times <= latest)

    def slice_start(self, times: AnyTime) -> AnyTime:
        """Return the start of the time slice that holds each of ``times``."""
        return self.aligned(times, self.slice_size)

    def aligned(self, times: AnyTime, size: int) -> AnyTime:
        """Return the latest time of each of ``times`` that is a multiple of ``size`` milliseconds, ``offset`` later."""
        return (times - self.offset) // size * size + self.offset

    def span_start(self, times: AnyTime) -> AnyTime:
        """Return the start of the span that holds each of ``times``."""
        return self.aligned(times, self.span_size)

    def last_of_slice(self, start: int) -> int:
        """Return the last millisecond of a slice, which is the timestamp of each element of that slice."""
        return start + self.slice_size - 1


def serve(specs: Iterable[CollectionSpec]) -> dict[CollectionKey, ServedCollection]:
    """Index specs by collection and version, which each report names.

    Collections with the same mechanism and variables share a protocol and a digest: to derive these takes longer than
    to compare those. ValueError if two specs have the same collection and version, there is none, or a statistic is too
    large.
    """
    found: dict[CollectionKey, ServedCollection] = {}
    twins: dict[bytes, ServedCollection] = {}
    for spec in specs:
        if spec.key in found:
            raise RequestError(
                f"two specs have collection {spec.collection} and version {spec.version}; raise the version of one"
            )
        # Compared, and never read back.
        facts = pickle.dumps((spec.mechanism, dict(spec.variables), spec.by), pickle.HIGHEST_PROTOCOL)
        twin = twins.get(facts)
        served = ServedCollection(spec, build_protocol(spec) if twin is None else twin.protocol, twin)
        twins.setdefault(facts, served)
        found[spec.key] = served
    if not found:
        raise RequestError("no spec is given; give at least one")
    return found
