"""Specs, messages and both paths of the decoder, and what became of each report, for the tests of the decoder."""

import math
from collections import Counter

import pytest

from tests import build
from tests.build import HOUR, START
from tests.reports import reports_of
from uldp.collector.reader import Decoded, ReportReader
from uldp.schemas.codec import columnar
from uldp.schemas.codec.batched import BatchViews
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec

YEAR = 365 * 24 * HOUR
ID = bytes(range(16))


def spec(collection: str, version: int, mechanism: str, **keys: object) -> CollectionSpec:
    base = {"domain": {"size": 10}, "sensitive": [0, 1, 2], "window": {"size": "1h", "allowed_lateness": "30m"}}
    named = {"collection": collection, "version": version, "mechanism": {"name": mechanism, "epsilon": 1.0}}
    return build.spec(**base | named | keys)


SYMBOL = spec("symbol", 1, "urr", tags=[{"name": "home"}], event_time="exact")  # 11 symbols
BITS = spec("bits", 1, "urap")  # 10 bits in 2 bytes
UPGRADED = spec("symbol", 2, "urap")
SLIDING = spec(
    "sliding", 1, "rr", sensitive="all", window={"size": "1h", "period": "15m"}, limits={"max_clock_skew": "0s"}
)
RETIRED = spec("symbol", 7, "urr", retired=True)
YOUNG = spec("young", 1, "urr", limits={"max_age": "2h"})
SPECS = {spec.key: spec for spec in (SYMBOL, BITS, UPGRADED, SLIDING, RETIRED, YOUNG)}

#: Sensitive bits 0 to 2 at will, one more at the most, and six bits of padding.
POSSIBLE_BITS = [b"\0\0", b"\xe0\0", b"\x80\x40", b"\x10\0"]
IMPOSSIBLE_PAYLOAD = [b"\x18\0", b"\x10\x80", b"\0\x20", b"\0\x01"]


def take_path(patch: pytest.MonkeyPatch, min_rows: float) -> None:
    """Decode ``min_rows`` messages or more as columns and batches in place, or all by the plain decoder."""
    patch.setattr(columnar, "MIN_ROWS", min_rows)
    if min_rows == math.inf:
        patch.setattr(BatchViews, "read", leave)


def leave(batches: BatchViews, message: bytes) -> None:
    return None


both_paths = pytest.mark.usefixtures("path")


def decode(*messages: Message, judge_lateness: bool = True) -> Decoded:
    return ReportReader(SPECS.values(), judge_lateness=judge_lateness).decode(messages)


def report(payload: int | bytes = 3, time: int = START, key: tuple[str, int] = SYMBOL.key, id_: bytes = ID) -> bytes:
    return Report(*key, id_, time, payload).encode()


def accounting(decoded: Decoded) -> dict[tuple[tuple[str, int], int], Accounting]:
    """The accounting of late and rejected reports by collection, version and slice."""
    found = {(key, start): part.accounting for key, parts in decoded.partials.items() for start, part in parts.slices()}
    return {slot: line for slot, line in found.items() if line != Accounting()}


def outcomes(decoded: Decoded) -> Counter[tuple[Report | bytes, str]]:
    """Each report and where it went. A counted one is dated to its slice; bytes that do not decode are one report."""
    found: Counter[tuple[Report | bytes, str]] = Counter()
    for columns in decoded.columns:
        bits = columns.payloads.ndim == 2
        for row in range(len(columns)):
            id_, slice_start = columns.report_ids[row].tobytes(), int(columns.slices[row])
            payload = columns.payloads[row].tobytes() if bits else int(columns.payloads[row])
            found[Report(columns.collection, columns.version, id_, slice_start, payload), "counted"] += 1
    for late in decoded.late:
        found.update((report, "late") for report in reports_of(late.data))
    for rejected in decoded.rejected:
        reports: list[Report | bytes] = []
        for data, _ in rejected.each():
            try:
                reports += reports_of(data)
            except ValueError:
                reports.append(data)
        assert len(reports) == rejected.reports
        found.update((report, rejected.reason) for report in reports)
    return found
