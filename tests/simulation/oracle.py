"""The oracle: what must become of a schedule, by a model of the promises in plain Python."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from tests.simulation.schedules import Delivery, Policy, Row, Schedule
from uldp.schemas.reasons import Reason

#: Minutes by which a device's clock may be ahead; the default of the spec.
SKEW = 10
#: How much of a rejected message is kept, if it is too large.
STORED_BYTES = 4_096

#: (version, start of a window)
Window = tuple[int, int]
#: A message's body and when it was published.
Kept = tuple[bytes, int]


@dataclass
class Expected:
    """What must become of a schedule.

    Attributes:
        received, late, rejected: Reports by window.
        counted: By number, the sets of windows of which exactly one must be those that count the report. There are
            several where copies that name different windows arrive together: which is first is nobody's promise.
        late_messages, rejections: What must be kept.
        reports: How many were sent; a message that cannot be decoded is one.
    """

    received: Counter[Window] = field(default_factory=Counter)
    late: Counter[Window] = field(default_factory=Counter)
    rejected: Counter[Window] = field(default_factory=Counter)
    counted: dict[int, set[frozenset[Window]]] = field(default_factory=dict)
    late_messages: Counter[Kept] = field(default_factory=Counter)
    rejections: Counter[tuple[str, *Kept]] = field(default_factory=Counter)
    reports: int = 0


#: Why no report of a message is judged, although all are counted.
_UNKNOWN = (Reason.UNKNOWN_COLLECTION, Reason.UNKNOWN_VERSION)


def expect(schedule: Schedule, collection: str, segment: int) -> Expected:
    """Say what must become of a schedule that is read in segments of ``segment`` minutes.

    A report is rejected, or else late, or else a duplicate, or else counted. It is late if it was published when the
    last window that holds it had closed; a duplicate, if one of its id was counted before and is remembered.
    """
    policy = schedule.policy
    out = Expected()
    timely: dict[int, list[tuple[int, Window]]] = defaultdict(list)
    for delivery in sorted(schedule.deliveries, key=lambda delivery: delivery.published):
        message = schedule.encode(collection, delivery)
        if delivery.damage is not None and not _looked_into(delivery):
            parts = [message.data[:STORED_BYTES]]
            if delivery.batched and delivery.rows and delivery.damage in _UNKNOWN:
                parts = [schedule.report(collection, delivery, row).encode() for row in delivery.rows]
            out.reports += len(parts)
            out.rejections.update((delivery.damage, part, message.publish_time) for part in parts)
            if delivery.batched and delivery.damage is Reason.MALFORMED:  # all that is known is what it names
                windows = _windows(policy, delivery, policy.slice_of(delivery.published))
                out.received.update(windows)
                out.rejected.update(windows)
            continue
        for row in delivery.rows:
            out.reports += 1
            data = schedule.report(collection, delivery, row).encode() if delivery.batched else message.data
            untimely = _untimely(policy, delivery.published, row)
            named = untimely is None and delivery.damage is not Reason.RETIRED_VERSION
            # A report that may name no window stands in those of its publish time.
            start = policy.slice_of(row.at if named else delivery.published)
            windows = _windows(policy, delivery, start)
            out.received.update(windows)
            if reason := delivery.damage or untimely or row.damage:
                out.rejections[reason, data, message.publish_time] += 1
                out.rejected.update(windows)
            elif delivery.published >= start + policy.closes_after:
                out.late_messages[data, message.publish_time] += 1
                out.late.update(windows)
            else:
                timely[row.number].append((delivery.published // segment, (delivery.version, start)))
    for number, copies in timely.items():
        out.counted[number] = {
            frozenset((version, window) for version, start in lives for window in policy.windows_of(start))
            for lives in _lives(policy, copies, segment)
        }
    return out


def _windows(policy: Policy, delivery: Delivery, start: int) -> list[Window]:
    """The windows that hold the slice that begins at ``start``."""
    return [(delivery.version_named, window) for window in policy.windows_of(start)]


def _looked_into(delivery: Delivery) -> bool:
    """Say whether a damaged message is decoded as far as its reports, so that each gets a record of its own."""
    return delivery.damage in (Reason.RETIRED_VERSION, Reason.WRONG_PAYLOAD, Reason.WRONG_LENGTH)


def _untimely(policy: Policy, published: int, row: Row) -> Reason | None:
    if row.damage is Reason.INVALID_TIME:
        return Reason.INVALID_TIME
    if row.at > published + SKEW:
        return Reason.TOO_EARLY
    if policy.max_age is not None and row.at < published - policy.max_age:
        return Reason.EXPIRED
    return None


def _lives(policy: Policy, copies: list[tuple[int, Window]], segment: int) -> set[frozenset[Window]]:
    """Say which of the copies of a report are counted: the first, and the first after it was forgotten, and so on.

    Args:
        policy: Of the collection.
        copies: In which segment each came, and which version and slice it named, in the order of publishing.
        segment: Minutes of a segment. When one is read, the watermark is its beginning.
    """
    states: set[tuple[frozenset[Window], int]] = {(frozenset(), 0)}
    for index, group in groupby(copies, key=lambda copy: copy[0]):
        together = {named for _, named in group}
        states = {after for before in states for after in _step(policy, *before, together, index * segment)}
    return {counted for counted, _ in states}


def _step(
    policy: Policy, counted: frozenset[Window], until: int, together: set[Window], watermark: int
) -> Iterator[tuple[frozenset[Window], int]]:
    if until > watermark:
        yield counted, until
    else:
        for version, start in together:
            yield counted | {(version, start)}, policy.forgotten_at(start)
