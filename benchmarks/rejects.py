"""What a rejected report costs beside one that is counted: ``uldp backfill`` of archives of single reports.

    python -m benchmarks.rejects

No two messages of an archive are equal. The cost of one is the difference of two archives, of which one holds more
messages; so the start of a job is in none. CPU time, medians of turns.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.rows import Row, clock, in_turn, print_table
from uldp.pipelines.jobs import local as jobs
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

START, HOUR = 1_767_225_600_000, 3_600_000
SIZE = 625
#: The messages of the smaller archive, and how many times as many more the larger one holds.
FEW, MORE, COUNTED_MORE, REPEAT = 20_000, 5, 20, 3
SPECS = tuple(
    CollectionSpec.parse(
        {
            "collection": name,
            "version": 1,
            "domain": {"size": SIZE},
            "mechanism": {"name": mechanism, "epsilon": 1.0},
            "window": {"size": "1h"},
            "retired": retired,
        }
    )
    for name, mechanism, retired in (("symbols", "rr", False), ("bits", "oue", False), ("old", "rr", True))
)
#: Makes the n-th message, from random bytes.
Make = Callable[[int, bytes], bytes]


def _report(number: int, drawn: bytes, **other: object) -> bytes:
    fields = {"collection": "symbols", "version": 1, "event_time": START + number % HOUR, "payload": drawn[0] * 2}
    return Report(report_id=drawn[:16], **{**fields, **other}).encode()  # type: ignore[arg-type]


COUNTED: Make = _report
MAKERS: Mapping[str, Make] = {
    Reason.NOT_AVRO: lambda number, drawn: b"{" + drawn,
    Reason.REGISTRY_FRAMING: lambda number, drawn: b"\0\0\0\0\7" + _report(number, drawn)[10:],
    Reason.UNKNOWN_SCHEMA: lambda number, drawn: b"\xc3\x01" + bytes(8) + _report(number, drawn)[10:],
    Reason.TRUNCATED: lambda number, drawn: _report(number, drawn)[: -1 - number % 8],
    Reason.MALFORMED: lambda number, drawn: _report(number, drawn) + bytes(1 + number % 8),
    Reason.UNKNOWN_COLLECTION: lambda number, drawn: _report(number, drawn, collection="others"),
    Reason.UNKNOWN_VERSION: lambda number, drawn: _report(number, drawn, version=2),
    Reason.RETIRED_VERSION: lambda number, drawn: _report(number, drawn, collection="old"),
    Reason.WRONG_PAYLOAD: lambda number, drawn: _report(number, drawn, payload=drawn[16:18]),
    Reason.WRONG_LENGTH: lambda number, drawn: _report(number, drawn, collection="bits", payload=drawn),
    Reason.OUT_OF_DOMAIN: lambda number, drawn: _report(number, drawn, payload=SIZE + drawn[0]),
    Reason.IMPOSSIBLE_PAYLOAD: lambda number, drawn: _report(number, drawn, collection="bits", payload=b"\xff" * 79),
    Reason.INVALID_TIME: lambda number, drawn: _report(number, drawn, event_time=-1 - number),
    Reason.TOO_EARLY: lambda number, drawn: _report(number, drawn, event_time=START + 99 * HOUR + number),
    Reason.EXPIRED: lambda number, drawn: _report(number, drawn, event_time=number),
}


def archive(folder: Path, make: Make, n: int) -> Path:
    """Write n messages, and return the archive."""
    rng = np.random.default_rng(5)
    stream = LocalStream.create(folder, simulated_clock=True)
    for first in range(0, n, 4_000):
        numbers = range(first, min(first + 4_000, n))
        stream.append([Message(make(number, rng.bytes(24)), START + HOUR) for number in numbers])
    stream.close()
    return folder


def backfill(source: Path) -> float:
    """Return the seconds of the processor that a job takes."""
    with tempfile.TemporaryDirectory() as out:
        began = clock()
        jobs.backfill(SPECS, source, Path(out, "out"), jobs.pipeline_options([]))
        return clock() - began


def costs(makers: Mapping[str, Make], few: int, repeat: int) -> dict[str, float]:
    """Return the seconds of the processor for one message of each kind."""
    sizes = {name: (few, few + (COUNTED_MORE if name == "counted" else MORE) * few) for name in makers}
    with tempfile.TemporaryDirectory() as folder:
        runs: dict[str, Callable[[], float]] = {}
        for name, make in makers.items():
            for n in sizes[name]:
                runs[f"{name} {n}"] = partial(backfill, archive(Path(folder, f"{name} {n}"), make, n))
        in_turn(dict(islice(runs.items(), 1)), 1)  # the first job of a process takes longer
        taken = in_turn(runs, repeat)
    return {
        name: (taken[f"{name} {many}"] - taken[f"{name} {least}"]) / (many - least)
        for name, (least, many) in sizes.items()
    }


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure a counted report, and one of each reason."""
    few, repeat = (200, 1) if quick else (FEW, REPEAT)
    found = costs({"counted": COUNTED, **MAKERS}, few, repeat)
    for name, taken in found.items():
        remark = "" if name == "counted" else f"{taken / found['counted']:.1f} times a counted report"
        yield Row("rejects", f"one report, {name}", 1, taken, remark=remark)


if __name__ == "__main__":
    print_table(rows(quick="--quick" in sys.argv))
