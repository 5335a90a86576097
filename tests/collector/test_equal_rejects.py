"""Messages of equal data that no parser can separate: what is wrong with them is found once."""

from unittest import mock

import pytest

from tests.build import START
from tests.collector.decoding import SYMBOL, decode, report
from uldp.collector.plain_decoder import PlainDecoder
from uldp.schemas.records import Message

N = 500


@pytest.mark.parametrize("data", [b"", b"junk", report()[:-3], report(key=("nobody", 1)), report(key=("symbol", 99))])
def test_what_is_wrong_is_found_once(data: bytes) -> None:
    messages = [Message(data, START, source=f"s.avro:{number}") for number in range(N)]
    with mock.patch.object(PlainDecoder, "_find", autospec=True, side_effect=PlainDecoder._find) as parsed:
        decoded = decode(*messages, Message(report(), START))
    assert parsed.call_count <= 2
    assert decoded.received == N + 1
    (record,) = decoded.rejected
    assert (record.reports, record.runs, record.bodies) == (N, ((0, N),), (data,))
    assert sum(map(len, decoded.columns)) == 1
    assert decoded.columns[0].collection == SYMBOL.collection
