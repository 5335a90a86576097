"""The containers that a search starts from. ``python -m tests.fuzz.container_seeds`` writes them to ``containers``."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from tests.fuzz.container import CODECS, LAYOUTS, NAMES, TEXTS, snappy, write, write_long
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import Accounting, Pane, PaneKind, Sender, Signals, Superseded
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Basis, Table, TableName

FOLDER = Path(__file__).parent / "containers"
TIME = 1_767_258_000_000
COUNTS = Statistic(
    "c",
    1,
    "0123456789abcdef",
    TIME,
    TIME + 3_600_000,
    Pane(PaneKind.LATE, 2),
    Accounting(107, 100, 4, 2, 1),
    ("few_reports",),
    Superseded(1, 90),
    Signals((0, 3), (60,), 2, Sender("00000000000000ff", 50)),
    cells=np.array([30, 40, 10]),
)
_ZERO, _HALF = np.zeros(2), np.full(2, 0.5)
ESTIMATE = Estimate(
    **COUNTS.header(),
    mechanism="urr",
    epsilon=1.5,
    shuffle=(Shuffled(of=("a",), reports=90, epsilon=0.25, delta=1e-6),),
    estimator="mle",
    tables=(
        Table(TableName.SHARE, np.array([0.25, 0.75]), np.array([0.1, 0.2]), 100, shape=(2,), whole=True),
        Table(TableName.MEAN, _HALF, _HALF, 90, ("a",), (2,), ("x", "y"), _ZERO, _HALF, basis=Basis.NORMAL),
    ),
)
PANE = {"pane": {"kind": "late", "revision": 2}}
#: With plain values only, as a reader returns them.
RECORDS: dict[str, list[dict[str, Any]]] = {
    "message": [
        Message(b"x" * 70, TIME, {"uldp-sender": "a"}).to_avro(),
        Message(b"", -1).to_avro(),
        Message(b"y", 2**63 - 1).to_avro(),
        Message(b"z", TIME).to_avro(),
    ],
    "rejected": [Rejected("decode", "not_avro", "", (b"x",), {"k": "v"}, (TIME,), "s:1", 1, "0").to_avro()],
    "missing": [Missing("t/0", 7, 9, TIME, TIME).to_avro()],
    "statistic": [COUNTS.to_avro() | PANE],
    "estimate": [ESTIMATE.to_avro() | PANE],
    "ids": [{"collection": "c", "version": 1, "slice": TIME, "ids": bytes(range(32))}],
}
_FIELDS = (
    b'{"name":"data","type":"bytes"},{"name":"attributes","type":{"type":"map","values":"string"}},'
    b'{"name":"publish_time","type":"long"}]}'
)
_BEGIN = b'{"type":"record","name":"uldp.Message","fields":[{"name":"more","type":'
#: Schemas that once ended a process, or hung it: a record in itself, in another, in a union; and endless nulls.
HOSTILE = {
    "recursive": _BEGIN + b'"uldp.Message"},' + _FIELDS,
    "recursive-far": _BEGIN
    + b'{"type":"record","name":"Other","fields":[{"name":"more","type":"uldp.Message"}]}},'
    + _FIELDS,
    "recursive-union": _BEGIN + b'["null","uldp.Message"]},' + _FIELDS,
    "nulls": _BEGIN + b'{"type":"array","items":"null"}},' + _FIELDS,
    "deep": b'{"type":"array","items":' * 20_000,
    "union": b'["null",[]]',
    "number": b"7",
}


_SENDER = b"\2" + write_long(11) + b"uldp-sender"
#: Two records of each layout of an archiver.
OF_LAYOUTS = {
    "pubsub": b"\2x\2i" + write_long(TIME * 1000) + _SENDER + b"\2a\0" + b"\0\0" + write_long(-1) + b"\0",
    "dataflow": _SENDER + b"\2a\0\2x\2" + write_long(TIME) + b"\0\0\0",
    "hubs": b"\1"
    + write_long(20)
    + b"1/1/2026 12:00:00 PM"
    + _SENDER
    + b"\4\2a\0\2\2x"
    # A text, and then null, of the same name; behind a number and a count that is negative.
    + b"\0"
    + write_long(20)
    + b"2026-01-01T00:00:00Z"
    + b"\3"
    + write_long(40)
    + b"\2n\0\2"
    + _SENDER[1:]
    + b"\4\2a"
    + _SENDER
    + b"\x08\0\0",
    "kafka": b"\2\2x\0",
}


def encoded(name: str) -> bytes:
    """Return the records of a schema, concatenated."""
    out = io.BytesIO()
    for record in RECORDS[name]:
        fastavro.schemaless_writer(out, load_schema(name), record)
    return out.getvalue()


def seeds() -> Iterator[tuple[str, bytes]]:
    """Yield each input with the name of its file."""
    for index, name in enumerate(NAMES):
        body, records = encoded(name), len(RECORDS[name])
        for codec in range(len(CODECS)):
            how = 3 if CODECS[codec] == b"deflate" else 1
            yield f"{name}-{codec}", bytes((how, index, codec, 0, records + 8, 0)) + body
        yield f"{name}-size", bytes((5, index, 0, 0, records + 8, 200)) + body
        yield f"{name}-marker", bytes((9, index, 0, 0, records + 8, 0)) + body
        yield f"{name}-edited", bytes((1, index, 0, 10, records + 8, 0)) + b"\0\x20abc" + body
        whole = write({b"avro.schema": TEXTS[index], b"avro.codec": b"null"}, [(records, body)])
        yield f"{name}-whole", b"\0" * 6 + whole
    fields = b"".join(bytes((index, 9 * index, width)) + bytes(range(1, 60)) for index, width in enumerate(range(9)))
    yield "messages", bytes((33, 0, 0, 0, 0, 0)) + fields
    yield "messages-deflate", bytes((35, 0, 1, 0, 0, 0)) + fields
    # Usual records, of which one has a body that ends like a record, and holds another one.
    tail = b"\0" + write_long(TIME)
    bodies = (b"abc", bytes(70), b"x" + tail + b"\2y" + tail, b"")
    times = TIME.to_bytes(6, "little")
    yield (
        "messages-usual",
        bytes((33, 0, 0, 0, 0, 0)) + b"".join(bytes((0, len(body), 6)) + times + body for body in bodies),
    )
    for count in (-1, 2**34, 2**62, -(2**63)):
        blocks = [(count, encoded("message"))]
        yield f"records-{count}", b"\0" * 6 + write({b"avro.schema": TEXTS[0]}, blocks)
        yield f"size-{count}", b"\0" * 6 + write({b"avro.schema": TEXTS[0]}, [(1, b"")], size=count)
    for name, body in OF_LAYOUTS.items():
        for written, stored in ((b"null", body), (b"snappy", snappy(body))):
            whole = write({b"avro.schema": LAYOUTS[name], b"avro.codec": written}, [(2, stored)])
            yield f"{name}-{written.decode()}", b"\0" * 6 + whole
    for name, text in HOSTILE.items():
        if len(text) < 1000:  # the search needs small inputs; tests read the others
            yield f"schema-{name}", b"\0" * 6 + write({b"avro.schema": text}, [(1, b"\0")])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in seeds():
        (FOLDER / name).write_bytes(data)
