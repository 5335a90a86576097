"""Messages in the framing of a schema registry count as those with our header do, if the decoder knows the ids."""

import pytest

from tests.build import HOUR, START, batch
from tests.collector.decoding import BITS, SPECS, SYMBOL, YOUNG, accounting, both_paths, outcomes, report
from uldp.collector.plain_decoder import MAX_MESSAGE_BYTES
from uldp.collector.reader import Decoded, ReportReader
from uldp.schemas.framing import HEADER_SIZE, header, load_schema
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report

IDS = {7: "report", 300: "report_batch"}
NUMBERS = {header(load_schema(name)): number for number, name in IDS.items()}


def framed(data: bytes, number: int | None = None) -> bytes:
    """A message in a registry's framing; unless given, the id is that of its schema."""
    return b"\0" + (number or NUMBERS[data[:HEADER_SIZE]]).to_bytes(4, "big") + data[HEADER_SIZE:]


def decode(*datas: bytes, ids: dict[int, str] | None = None) -> Decoded:
    decoder = ReportReader(SPECS.values(), judge_lateness=True, registry_ids=IDS if ids is None else ids)
    return decoder.decode([Message(data, START, source=f"segment:{row}") for row, data in enumerate(datas)])


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


SINGLES = [report(number % 12, id_=_id(number)) for number in range(50)]
BATCHES = [
    batch([Report(*BITS.key, _id(100 * number + each), START, b"\x80\x40") for each in range(number + 1)]).encode()
    for number in range(20)
]
#: Late ones, expired ones and ones of the future among others.
TIMES = (START - 30 * HOUR, START, START + HOUR)
MIXED = batch([Report(*YOUNG.key, _id(number), time, 1) for number, time in enumerate(TIMES)]).encode()
LATE = report(time=START - 3 * HOUR)
ODD = [LATE, SINGLES[0][:-1], SINGLES[0] + b"\0", report(key=("nobody", 1)), report(key=(SYMBOL.collection, 9))]
SENT = {
    "singles": SINGLES,
    "batches": BATCHES,
    "mixed": [data for pair in zip(SINGLES, BATCHES, strict=False) for data in pair],
    "odd": [MIXED, *ODD],
    "all": [*SINGLES, MIXED, *BATCHES, *ODD],
    "none": [],
}


@both_paths
@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_framed_messages_come_out_as_those_with_our_header(sent: list[bytes]) -> None:
    ours, theirs, half = decode(*sent), decode(*map(framed, sent)), decode(*map(framed, sent[::2]), *sent[1::2])
    assert (theirs.received, theirs.late, theirs.rejected) == (ours.received, ours.late, ours.rejected)
    assert accounting(theirs) == accounting(ours)
    assert outcomes(theirs) == outcomes(half) == outcomes(ours)


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (framed(SINGLES[0], 8), Reason.REGISTRY_FRAMING, "the schema id 8 of 4 bytes, which no file of ids names"),
        (b"\0" + bytes(7) + framed(SINGLES[0])[4:], Reason.REGISTRY_FRAMING, "the schema id 7 of 8 bytes"),
        (framed(SINGLES[0], 300), Reason.MALFORMED, ""),
        (framed(BATCHES[1], 7), Reason.MALFORMED, ""),
        (b"\0\0\0\0\x07", Reason.TRUNCATED, "10 bytes end inside the body"),
        (b"\0\0\0\x07", Reason.NOT_AVRO, "starts with 0000"),
        (b"\0", Reason.NOT_AVRO, "starts with 00"),
        (b"", Reason.NOT_AVRO, "starts with nothing"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_message_that_the_ids_do_not_explain_is_rejected(data: bytes, reason: Reason, detail: str) -> None:
    decoded = decode(SINGLES[1], data, framed(SINGLES[2]))
    (rejected,) = decoded.rejected
    assert (rejected.reason, rejected.source, decoded.received) == (reason, "segment:1", 3)
    assert detail in rejected.detail


def test_the_limit_holds_for_a_message_with_its_header() -> None:
    body = bytes(MAX_MESSAGE_BYTES - HEADER_SIZE)
    reasons = [decode(b"\0\0\0\0\x07" + data).rejected[0].reason for data in (body, body + b"\0")]
    assert reasons[1] is Reason.TOO_LARGE is not reasons[0]
