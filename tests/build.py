"""Times, specs, reports and counts for all tests. A test names the values that matter to it, and no others."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.collector.columns import ReportColumns
from uldp.collector.partial import Partial, numbers_of
from uldp.collector.signals import SenderCounts
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.cells import Cells
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Counts, Floats, Payloads, ReportIds
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.records import Message, Report, ReportBatch
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table, TableName

#: Milliseconds.
MINUTE, HOUR = 60_000, 3_600_000
#: 2026-01-01T09:00:00Z in milliseconds: the beginning of an hour.
START = 1_767_258_000_000

#: The key of digests of senders.
SENDER_KEY = bytes(range(32))

MINIMAL: dict[str, Any] = {
    "collection": "c",
    "version": 1,
    "domain": {"size": 5},
    "mechanism": {"name": "urr", "epsilon": 1.0},
    "window": {"size": "1h"},
}


def spec(**keys: Any) -> CollectionSpec:
    """The spec ``MINIMAL``, with ``keys`` in place of its own or beside them; a window needs one report alone."""
    return CollectionSpec.parse(MINIMAL | keys | {"limits": {"min_reports": 1} | keys.get("limits", {})})


def pure_mechanism(spec: CollectionSpec) -> PureMechanism:
    """The mechanism of a spec, if its cells are support counts."""
    mechanism = build_protocol(spec).mechanism
    assert isinstance(mechanism, PureMechanism)
    return mechanism


#: The digest of the device half of ``MINIMAL``.
DIGEST = spec().device_digest
NO_TAGS: Mapping[str, tuple[float, float]] = {}
NO_REPORTS = Accounting()


def report(number: int, payload: int | bytes, time: int = START, key: CollectionKey = ("c", 1)) -> Report:
    """The report whose id is ``number``, as 16 bytes."""
    return Report(*key, number.to_bytes(16, "big"), time, payload)


def message(report: Report, published: int | None = None) -> Message:
    """A report as a broker gives it; unless given, the publish time is the event time."""
    return Message(report.encode(), report.event_time if published is None else published)


def batch(reports: Sequence[Report]) -> ReportBatch:
    """One or more reports of one collection and version and of one kind of payload, as one message's columns."""
    first, payloads = reports[0], [report.payload for report in reports]
    ids = b"".join(report.report_id for report in reports)
    times = np.array([report.event_time for report in reports], dtype=np.int64).tobytes()
    if isinstance(first.payload, int):
        symbols = np.array(payloads, dtype=np.uint32).tobytes()
        return ReportBatch(first.collection, first.version, ids, times, symbols=symbols)
    bits = b"".join(bits for bits in payloads if isinstance(bits, bytes))
    return ReportBatch(first.collection, first.version, ids, times, bits=bits)


def columns(
    ids: Sequence[tuple[int, int]] | ReportIds,
    slices: npt.ArrayLike = START,
    payloads: Payloads | None = None,
    signals: npt.ArrayLike = 0,
    key: CollectionKey = ("c", 1),
) -> ReportColumns:
    """Validated reports as columns.

    Args:
        ids: The two words of each id.
        slices: The start of each report's slice, in milliseconds, or one of all.
        payloads: Symbols or packed bits; unless given, each report's symbol is its position.
        signals: Each report's signals, or those of all.
        key: Collection and version.
    """
    n = len(ids)
    return ReportColumns(
        *key,
        np.array(ids, dtype=np.uint64).reshape(n, 2),
        np.array(np.broadcast_to(slices, n), dtype=np.int64),
        np.arange(n, dtype=np.uint32) if payloads is None else payloads,
        np.array(np.broadcast_to(signals, n), dtype=np.uint8),
    )


def part(
    cells: Cells | None = None,
    accounting: Accounting = NO_REPORTS,
    *,
    skew: Counts | int = 0,
    improbable: int = 0,
    senders: SenderCounts | None = None,
    payloads: Cells | None = None,
) -> Partial:
    """The part of one window."""
    numbers = numbers_of(1, skew, improbable, **asdict(accounting))
    return Partial(
        np.zeros(1, dtype=np.int64), numbers, cells, {} if senders is None else {0: senders}, payloads=payloads
    )


def pane(
    cells: npt.ArrayLike,
    kind: str = "on_time",
    revision: int = 0,
    *,
    start: int = START,
    end: int | None = None,
    key: CollectionKey = ("c", 1),
    **fields: Any,
) -> Statistic:
    """The cells of a window, which is an hour unless ``end`` is given; n is their sum unless ``accounting`` is."""
    cells = np.array(cells, dtype=np.int64)
    n, end = int(cells.sum()), start + HOUR if end is None else end
    header: dict[str, Any] = {"device_digest": DIGEST, "accounting": Accounting(n, n)} | fields
    fired = Pane(PaneKind(kind), revision)
    return Statistic(*key, window_start=start, window_end=end, pane=fired, cells=cells, **header)


def floats(*numbers: float) -> Floats:
    """Numbers as an array."""
    return np.array(numbers, dtype=np.float64)


def table(name: str, values: npt.ArrayLike, stderr: npt.ArrayLike, **fields: Any) -> Table:
    """A table of one dimension from 100 reports, unless ``fields`` say otherwise."""
    values = np.array(values, dtype=np.float64)
    defaults: dict[str, Any] = {"n": 100, "shape": values.shape, "whole": name == "share"}
    return Table(TableName(name), values, np.array(stderr, dtype=np.float64), **(defaults | fields))


def tables(
    shares: npt.ArrayLike, stderr: npt.ArrayLike, tags: Mapping[str, tuple[float, float]] = NO_TAGS, **fields: Any
) -> tuple[Table, ...]:
    """The shares of the values; and with tags, by tag its mass and its standard error, and the bound."""
    share = table("share", shares, stderr, **fields)
    if not tags:
        return (share,)
    masses, errors = np.array(list(tags.values())).T
    bound = table("bound", [2 * np.maximum(masses, 0).sum()], [0.0], **fields)
    return share, table("hidden", masses, errors, keys=tuple(tags), **fields), bound


def shares_of(estimate: Estimate) -> Table:
    """The shares of the only variable of a collection."""
    share = estimate.table(TableName.SHARE)
    assert share is not None
    return share


def estimate(
    statistic: Statistic,
    shares: npt.ArrayLike,
    stderr: npt.ArrayLike,
    tags: Mapping[str, tuple[float, float]] = NO_TAGS,
    **fields: Any,
) -> Estimate:
    """The estimate ``mle`` under ``rr`` with epsilon 1, unless ``fields`` say otherwise."""
    made = tables(shares, stderr, tags, n=statistic.n)
    defaults: dict[str, Any] = {"mechanism": "rr", "epsilon": 1.0, "estimator": "mle", "tables": made}
    return Estimate(**statistic.header(), **(defaults | fields))
