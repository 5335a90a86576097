"""The inputs from which the search starts. ``python -m tests.fuzz.seeds`` writes them to tests/fuzz/corpus."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.fuzz.decoder import ATTEMPTS, CLOCKS, HOUR, MAX_MESSAGES, MINUTE, SPECS, START, frame
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.records import Report, ReportBatch
from uldp.schemas.specs.collection import CollectionSpec

#: The first time of which no text has a year of four digits, in milliseconds.
YEAR_10000 = 253_402_300_800_000

FOLDER = Path(__file__).parent / "corpus"
VECTORS = Path(__file__).parents[2] / "schemas" / "uldp" / "schemas" / "vectors" / "messages.json"
ID = bytes(range(16))
#: On both sides of each edge: of the ages and skews allowed, of the calendar, and of what a varint's bytes can hold.
TIMES = (
    *(START, START - 1, START - 2 * HOUR, START - 2 * HOUR - 1, START + 10 * MINUTE, START + 10 * MINUTE + 1),
    *(-1, 0, YEAR_10000 - 1, YEAR_10000, 2**34 - 1, 2**34, 2**41, 2**48, 2**63 - 1, -(2**63)),
)
SYMBOLS = (3, 63, 64, 599, 600, 601, 2**13, 2**27 - 1, 2**27, 2**31 - 1, -1, -(2**31))


def _of_spec(spec: CollectionSpec) -> Iterator[tuple[str, list[bytes]]]:
    """Yield messages by what varies in them: the time, the payload, the reports of a batch."""
    payloads: list[int | bytes] = [b"ab", bytes(1), *SYMBOLS]
    good: int | bytes = 3
    width = build_protocol(spec).mechanism.form.width
    if width is not None:
        payloads = [b"\x80".ljust(width, b"\0"), b"\xff" * width, bytes(width + 1), b"", 3]
        good = bytes(width)
    yield "times", [Report(*spec.key, ID, time, good).encode() for time in TIMES]
    yield "payloads", [Report(*spec.key, ID, START, payload).encode() for payload in payloads]
    ids, times = 3 * ID, np.array([START, START - 3 * HOUR, -1], dtype=np.int64).tobytes()
    symbols = np.array([3, 601, 2**32 - 1], dtype=np.uint32).tobytes()
    bits = good + good + b"\xff" * len(good) if isinstance(good, bytes) else b"bits"
    batches = [
        ReportBatch(*spec.key, ids, times, symbols=symbols),
        ReportBatch(*spec.key, ids, times, bits=bits),
        ReportBatch(*spec.key, ids, times, symbols=symbols[:8]),
        ReportBatch(*spec.key, b"", b"", bits=b""),
    ]
    yield "batches", [batch.encode() for batch in batches]


def seeds() -> Iterator[tuple[str, bytes]]:
    """Yield each input with the name of its file."""
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    for vector in (*vectors["positive"], *vectors["negative"]):
        yield re.sub("[^a-z0-9]+", "-", vector["name"].lower()), frame(bytes.fromhex(vector["message"]))
    for spec in SPECS:
        for name, sent in _of_spec(spec):
            yield f"{spec.mechanism.name}-{name}", b"".join(map(frame, sent[:MAX_MESSAGES]))
        report = Report(*spec.key, ID, START, 3).encode()
        yield f"{spec.mechanism.name}-clocks", b"".join(frame(report, clock) for clock in range(len(CLOCKS)))
    unknown = [Report(*key, ID, START, 3).encode() for key in (("ab", 3), ("nobody", 1))]
    yield "unknown", b"".join(map(frame, unknown))
    yield "attempts", b"".join(frame(unknown[0], attempt=attempt) for attempt in range(len(ATTEMPTS)))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in seeds():
        (FOLDER / name).write_bytes(data)
