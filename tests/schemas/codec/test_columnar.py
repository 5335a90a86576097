"""The columnar decoder against the plain one, which is the reference.

Whatever ``decode_columns`` takes must be what ``SchemaStore.decode`` says; what it does not take is left to that.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from uldp.schemas.codec import columnar
from uldp.schemas.codec.columnar import MIN_ROWS, Layout, decode_columns, report_schema, write_varint
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.framing import header, report_store
from uldp.schemas.records import Report, ReportBatch

#: (collection, version) and the bytes of a bit payload, or None for a symbol. Names that agree in their last 8 bytes,
#: prefixes that agree in theirs, names of which one begins like another, and a length that takes two bytes.
KEYS: dict[tuple[str, int], int | None] = {
    ("a", 1): None,
    ("checkins", 1): None,
    ("checkins", 2): None,
    ("checkins", 3): 2,
    ("checkins", 129): None,
    ("checkins-2", 1): None,
    ("east-checkins", 1): None,
    ("west-checkins", 1): None,
    ("east-of-bits", 7): 3,
    ("west-of-bits", 7): 3,
    ("wide", 300): 130,
}
LAYOUTS = [Layout.of(report_schema(), *key, width) for key, width in KEYS.items()]
#: First and last millisecond whose varint takes 6 bytes, and 7.
SIX_BYTES, SEVEN_BYTES = (2**34, 2**41 - 1), (2**41, 2**48 - 1)


@pytest.fixture(autouse=True, scope="module", params=["compared", "looked up"])
def _small_matrices(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let even a single message make a matrix, and find layouts in both ways."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", 1)
        patch.setattr(columnar, "MOST_COMPARED", len(LAYOUTS) if request.param == "compared" else 0)
        yield


def fast_reports(messages: list[bytes]) -> dict[int, Report]:
    """What the columnar decoder takes, by position. Each message is taken once or left, and nothing else is."""
    found, rest = decode_columns(Bodies.of(messages), LAYOUTS)
    reports: dict[int, Report] = {}
    for fast in found:
        assert len(fast.layouts) == len(fast.ends)
        assert sorted({*fast.layouts}) == [*fast.layouts]
        assert (np.diff([0, *fast.ends]) > 0).all()
        (width,) = {[*KEYS.values()][layout] for layout in fast.layouts}
        layouts = np.repeat(fast.layouts, np.diff([0, *fast.ends])).tolist()
        n = len(fast.rows)
        assert fast.ends[-1] == n
        assert fast.report_ids.shape == (n, 2)
        assert fast.event_times.shape == (n,)
        assert fast.payloads.shape == ((n,) if width is None else (n, width))
        assert fast.report_ids.dtype == np.uint64
        assert fast.event_times.dtype == np.int64
        assert fast.payloads.dtype == (np.uint32 if width is None else np.uint8)
        for index, row in enumerate(fast.rows.tolist()):
            assert row not in reports
            collection, version = [*KEYS][layouts[index]]
            payload = int(fast.payloads[index]) if width is None else fast.payloads[index].tobytes()
            reports[row] = Report(
                collection, version, fast.report_ids[index].tobytes(), int(fast.event_times[index]), payload
            )
    assert rest.tolist() == [row for row in range(len(messages)) if row not in reports]
    return reports


def plain_report(message: bytes) -> Report:
    name, record = report_store().decode(message)
    assert name == "uldp.Report"
    return Report(**record)


def assert_agrees(messages: list[bytes]) -> None:
    for row, report in fast_reports(messages).items():
        assert report == plain_report(messages[row])


IDS = st.binary(min_size=16, max_size=16)
EDGES = [0, -1, *SIX_BYTES, *SEVEN_BYTES, SIX_BYTES[0] - 1, SEVEN_BYTES[1] + 1, -(2**34), 2**63 - 1, -(2**63)]
TIMES = st.integers(2**34, 2**48 - 1) | st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
SYMBOLS = st.integers(0, 700) | st.sampled_from([-1, -64, 2**6, 2**13, 2**20, 2**27 - 1, 2**27, 2**31 - 1, -(2**31)])
KEY = st.sampled_from([*KEYS, ("nobody", 1), ("checkins", 4)])
BITS = st.sampled_from([0, 1, 2, 3, 4, 129, 130, 131]).flatmap(lambda width: st.binary(min_size=width, max_size=width))


@st.composite
def reports(draw: st.DrawFn) -> bytes:
    """A well-formed report, not always of the payload that its collection has."""
    key = draw(KEY)
    width = KEYS.get(key)
    fitting = SYMBOLS if width is None else st.binary(min_size=width, max_size=width)
    return Report(*key, draw(IDS), draw(TIMES), draw(fitting | SYMBOLS | BITS)).encode()


@st.composite
def varints(draw: st.DrawFn) -> bytes:
    """Bytes with the shape of a varint, of any length, zeros at its end among them."""
    *body, last = draw(st.lists(st.integers(0, 127) | st.just(0), min_size=1, max_size=11))
    return bytes([*(byte | 0x80 for byte in body), last])


@st.composite
def assembled(draw: st.DrawFn) -> bytes:
    """The prefix of a collection and then fields that no encoder of ours writes."""
    key = draw(st.sampled_from(list(KEYS)))
    prefix = Layout.of(report_schema(), *key, KEYS[key]).prefix
    branch = draw(st.sampled_from([b"\0", b"\2", b"\1", b"\3", b"\4", b"\x80\0", b"\x82\0", b"\xff\xff\xff\xff\x0f"]))
    length = b"" if KEYS[key] is None else draw(st.just(write_varint(KEYS[key] or 0)) | varints())
    payload = draw(varints() | BITS)
    return prefix + draw(IDS) + draw(varints()) + branch + length + payload


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A report with a few bytes changed, inserted or deleted, often such that its length stays."""
    message = bytearray(draw(reports()))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(message) - 1))
        byte = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]))
        match draw(st.sampled_from(["set", "flip", "insert", "delete", "move"])):
            case "set":
                message[at] = byte
            case "flip":
                message[at] ^= 0x80
            case "insert":
                message.insert(at, byte)
            case "delete" if len(message) > 1:
                del message[at]
            case "move":
                message.insert(draw(st.integers(0, len(message) - 1)), message.pop(at))
    return bytes(message)


MESSAGES = reports() | assembled() | mutated() | st.binary(max_size=60)


def report(time: int, payload: int | bytes, key: tuple[str, int] = ("a", 1)) -> bytes:
    return Report(*key, bytes(range(16)), time, payload).encode()


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(MESSAGES, max_size=8))
@example([report(2**34, -1), report(2**41, 3), report(2**48, 3), b"", header(report_schema())])
def test_what_is_taken_is_what_the_plain_decoder_says(messages: list[bytes]) -> None:
    assert_agrees(messages)


@given(reports(), st.lists(MESSAGES, max_size=3), st.integers(2, 5))
def test_neighbours_in_a_matrix_do_not_matter(message: bytes, others: list[bytes], copies: int) -> None:
    alone = fast_reports([message])
    together = fast_reports([*others, *[message] * copies])
    assert [together.get(len(others) + copy) for copy in range(copies)] == [alone.get(0)] * copies


@pytest.mark.parametrize("key", KEYS)
def test_times_of_any_unit_are_taken(key: tuple[str, int]) -> None:
    """Up to 9 bytes: seconds, microseconds and nanoseconds since 1970, and times before."""
    payload = 600 if KEYS[key] is None else bytes(KEYS[key] or 0)
    bounds = [0, *(sign * 2**bits + more for bits in range(62) for sign in (1, -1) for more in (-1, 0))]
    assert len(fast_reports([report(time, payload, key) for time in bounds])) == len(bounds)
    assert_agrees([report(time, payload, key) for time in bounds])


@pytest.mark.parametrize("key", KEYS)
def test_every_changed_byte_of_a_report_is_noticed(key: tuple[str, int]) -> None:
    payload = 600 if KEYS[key] is None else bytes(range(KEYS[key] or 0))
    message = report(1767258000000, payload, key)
    changed = [
        message[:at] + bytes([byte]) + message[at + 1 :]
        for at in range(len(message))
        for byte in (*range(8), 0x80, 0xFF)
    ]
    assert_agrees(changed)


@given(st.sampled_from(list(KEYS)), IDS, st.integers(SIX_BYTES[0], SEVEN_BYTES[1]), st.data())
def test_what_devices_send_from_1971_on_is_taken(
    key: tuple[str, int], id_: bytes, time: int, data: st.DataObject
) -> None:
    width = KEYS[key]
    payloads: st.SearchStrategy[int | bytes] = st.integers(0, 2**27 - 1)
    if width is not None:
        payloads = st.binary(min_size=width, max_size=width)
    sent = Report(*key, id_, time, data.draw(payloads))
    assert fast_reports([sent.encode()]) == {0: sent}


@pytest.mark.parametrize("time", [*SIX_BYTES, *SEVEN_BYTES])
@pytest.mark.parametrize("symbol", [0, 63, 64, 2**13 - 1, 2**13, 2**20 - 1, 2**20, 2**27 - 1])
def test_edges_of_both_time_widths_and_all_symbol_widths_are_taken(time: int, symbol: int) -> None:
    sent = Report("a", 1, bytes(16), time, symbol)
    assert fast_reports([sent.encode()]) == {0: sent}


@pytest.mark.parametrize(
    "left",
    [
        report(2**40, 2**27),
        report(2**40, -1),
        report(2**40, b"ab"),
        report(2**40, 3, ("nobody", 1)),
        report(2**40, 3, ("checkins", 4)),
        report(2**40, 3, ("east-of-bits", 7)),
        report(2**40, b"ab", ("east-of-bits", 7)),
        ReportBatch("a", 1, bytes(16), bytes(8), symbols=bytes(4)).encode(),
    ],
)
def test_the_rest_is_left(left: bytes) -> None:
    assert_agrees([left])
    assert fast_reports([left]) == {}


@pytest.mark.parametrize(("n", "taken"), [(MIN_ROWS - 1, 0), (MIN_ROWS, MIN_ROWS)])
def test_few_messages_are_left(n: int, taken: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar, "MIN_ROWS", MIN_ROWS)
        assert len(fast_reports([report(2**40, 3)] * n)) == taken


@given(st.integers(0, 2**63 - 1))
@example(2**63 - 1)
def test_write_varint_is_avros(value: int) -> None:
    before, after = Layout.of(report_schema(), "a", 1, None).prefix + bytes(16), b"\x00\x00"
    assert Report("a", 1, bytes(16), value, 0).encode() == before + write_varint(value) + after
