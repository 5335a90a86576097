"""Messages of the conformance vectors: their records, and those that a collector rejects."""

from collections.abc import Mapping
from typing import Any

from tests import build
from uldp.collector.plain_decoder import MAX_MESSAGE_BYTES
from uldp.schemas.framing import header, load_schema
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Report, ReportBatch

_RETIRED = {"collection": "c", "version": 2, "retired": True}
#: The keys of the specs of a collector, in place of those of ``MINIMAL``.
SERVED: list[dict[str, Any]] = [dict(build.MINIMAL), build.MINIMAL | _RETIRED]
_HEADER = header(load_schema("report"))
_YEAR = 365 * 24 * build.HOUR
_COLUMN = {"report_ids": bytes(32), "event_times": build.START.to_bytes(8, "little") * 2}
#: Messages that this collector rejects, with the name of the mistake. It receives them at ``build.START``.
REJECTED: list[tuple[str, Reason, Report | ReportBatch]] = [
    ("a collection without a spec", Reason.UNKNOWN_COLLECTION, build.report(1, 0, key=("d", 1))),
    ("the next version", Reason.UNKNOWN_VERSION, build.report(1, 0, key=("c", 3))),
    ("a version that is retired", Reason.RETIRED_VERSION, build.report(1, 0, key=("c", 2))),
    ("seconds", Reason.EXPIRED, build.report(1, 0, build.START // 1000)),
    ("microseconds", Reason.INVALID_TIME, build.report(1, 0, build.START * 1000)),
    ("before 1970", Reason.INVALID_TIME, build.report(1, 0, -1)),
    ("a clock that is a day ahead", Reason.TOO_EARLY, build.report(1, 0, build.START + 24 * build.HOUR)),
    ("a report of two years ago", Reason.EXPIRED, build.report(1, 0, build.START - 2 * _YEAR)),
    ("two ids and one symbol", Reason.MALFORMED, ReportBatch("c", 1, **_COLUMN, symbols=bytes(4))),
    ("two ids and no time", Reason.MALFORMED, ReportBatch("c", 1, bytes(32), b"", symbols=bytes(8))),
    ("bytes for symbols", Reason.WRONG_PAYLOAD, ReportBatch("c", 1, **_COLUMN, bits=bytes(2))),
]


def messages_of(written: Any) -> Any:
    """Return messages with their records, messages that are none, and messages that collectors of ``SERVED`` reject."""
    return written | {
        "positive": [each | {"message": record(each).encode().hex()} for each in written["positive"]],
        "served": SERVED,
        "publish_time": build.START,
        "rejected": [
            {"name": name, "reason": str(reason), "message": sent.encode().hex()} for name, reason, sent in REJECTED
        ]
        + [
            {
                "name": "zeros behind a header",
                "reason": "too_large",
                "message": _HEADER.hex(),
                "zeros": MAX_MESSAGE_BYTES,
            }
        ],
    }


def record(vector: Mapping[str, Any]) -> Report | ReportBatch:
    """Return the record of a message of ``messages.json``, in which bytes are written in hex."""
    fields: dict[str, Any] = {
        name: bytes.fromhex(value) if isinstance(value, str) and name != "collection" else value
        for name, value in vector["record"].items()
    }
    return Report(**fields) if vector["type"] == "Report" else ReportBatch(**fields)
