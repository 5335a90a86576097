"""Bytes that fastavro reads although Avro does not write them are malformed, on the fast paths and on the plain one."""

import math

import pytest

from tests.build import START
from tests.collector.decoding import BITS, ID, SYMBOL, decode, report, take_path
from uldp.schemas.framing import header, load_schema
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, ReportBatch

REPORT = report(3)
BATCH = ReportBatch(*SYMBOL.key, ID, START.to_bytes(8, "little"), symbols=b"\3\0\0\0").encode()
BATCH_PREFIX = header(load_schema("report_batch")) + b"\x0csymbol\x02"
#: A symbol is branch 0 of the payload's union, bits are branch 1. Counted from the end they are branches -2 and -1.
NEGATIVE_SYMBOL, NEGATIVE_BITS = b"\x03", b"\x01"
LONGER = {
    "symbol": REPORT[:-1] + b"\x86\x00",
    "union": REPORT[:-2] + b"\x80\x00" + REPORT[-1:],
    "time": REPORT[:-3] + bytes([REPORT[-3] | 0x80, 0]) + REPORT[-2:],
    "large symbol": REPORT[:-1] + b"\x80\x80\x80\x80\x10",
    "negative union": REPORT[:-2] + NEGATIVE_SYMBOL + REPORT[-1:],
    "negative union of bits": report(b"\0\0", key=BITS.key)[:-4] + NEGATIVE_BITS + b"\x04\0\0",
    "length of ids": BATCH_PREFIX + b"\xa0\x00" + BATCH[len(BATCH_PREFIX) + 1 :],
    "length of symbols": BATCH[:-5] + b"\x88\x00" + BATCH[-4:],
    "negative union of a batch": BATCH[:-6] + NEGATIVE_SYMBOL + BATCH[-5:],
}


@pytest.mark.parametrize("min_rows", [1, math.inf], ids=["columnar", "plain"])
@pytest.mark.parametrize("data", LONGER.values(), ids=LONGER.keys())
def test_other_bytes_of_the_same_value_are_malformed(
    data: bytes, min_rows: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_path(monkeypatch, min_rows)
    decoded = decode(Message(data, START))
    assert [rejected.reason for rejected in decoded.rejected] == [Reason.MALFORMED]
