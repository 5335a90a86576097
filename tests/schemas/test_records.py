"""Records survive the wire and the disk, within their bounds, and accounting is a commutative monoid."""

import io
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import load_schema, report_store
from uldp.schemas.pane import Accounting, Pane, PaneKind, Sender, Signals, Superseded
from uldp.schemas.records import (
    ATTEMPT,
    KNOWN_ATTRIBUTES,
    MAX_VALUE_BYTES,
    NO_ATTRIBUTES,
    SENDER,
    Message,
    Missing,
    Report,
    ReportBatch,
    iso,
    known_attributes,
    missing_messages,
)
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import MAX_CELLS, Statistic, pack_cells, unpack_cells
from uldp.schemas.table import Basis, Table, TableName

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.floats(allow_nan=False)
TEXTS = st.text(max_size=8)
BYTES = st.binary(max_size=40)
ATTRIBUTES = st.dictionaries(TEXTS, TEXTS, max_size=3).flatmap(lambda d: st.sampled_from([d, MappingProxyType(d)]))

REPORTS = st.builds(Report, TEXTS, INTS, st.binary(min_size=16, max_size=16), LONGS, INTS | BYTES)
BATCHES = st.builds(ReportBatch, TEXTS, INTS, BYTES, BYTES, BYTES, st.none()) | st.builds(
    ReportBatch, TEXTS, INTS, BYTES, BYTES, st.none(), BYTES
)
MESSAGES = st.builds(Message, BYTES, LONGS, ATTRIBUTES, st.just(""))
REJECTED = st.builds(
    Rejected,
    TEXTS,
    TEXTS,
    TEXTS,
    st.tuples(BYTES),
    ATTRIBUTES,
    st.tuples(LONGS),
    TEXTS,
    st.integers(1, 2**31 - 1),
    TEXTS,
)
COUNTERS = st.integers(0, 2**40)
ACCOUNTING = st.builds(Accounting, *[COUNTERS] * 6)
CELLS = st.lists(LONGS, max_size=5).map(lambda cells: np.array(cells, dtype=np.int64))
FLOATS = st.lists(DOUBLES, max_size=5).map(np.array)
HEADER = (
    TEXTS,
    INTS,
    TEXTS,
    LONGS,
    LONGS,
    st.builds(Pane, st.sampled_from(PaneKind), INTS),
    ACCOUNTING,
    st.lists(TEXTS, max_size=2).map(tuple),
    st.none() | st.builds(Superseded, INTS, LONGS),
    st.builds(
        Signals,
        st.lists(LONGS, max_size=2).map(tuple),
        st.lists(LONGS, max_size=2).map(tuple),
        LONGS,
        st.none() | st.builds(Sender, TEXTS, LONGS),
    ),
)
STATISTICS = st.builds(Statistic, *HEADER, cells=CELLS)
NAMES = st.lists(TEXTS, max_size=2).map(tuple)
TABLES = st.builds(
    Table,
    st.sampled_from(TableName),
    FLOATS,
    FLOATS,
    LONGS,
    NAMES,
    st.lists(LONGS, max_size=2).map(tuple),
    st.none() | NAMES,
    *[st.none() | FLOATS] * 4,
    DOUBLES,
    st.booleans(),
    st.sampled_from(Basis),
    st.booleans(),
    st.none() | FLOATS,
)
ESTIMATES = st.builds(
    Estimate,
    *HEADER,
    mechanism=TEXTS,
    epsilon=st.none() | DOUBLES,
    estimator=TEXTS,
    tables=st.lists(TABLES, max_size=3).map(tuple),
)


def through_avro(schema: str, value: dict[str, Any]) -> dict[str, Any]:
    """What a reader of a file sees of a value; strict, so that a field that the schema does not have is an error."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, load_schema(schema), value, strict=True)
    file.seek(0)
    read = fastavro.schemaless_reader(file, load_schema(schema), None)
    assert isinstance(read, dict)
    return read


@given(REPORTS)
def test_report_round_trips(report: Report) -> None:
    name, value = report_store().decode(report.encode())
    assert name == "uldp.Report"
    assert Report(**value) == report


@given(BATCHES)
def test_report_batch_round_trips(batch: ReportBatch) -> None:
    name, value = report_store().decode(batch.encode())
    assert name == "uldp.ReportBatch"
    assert ReportBatch(**value.pop("payload"), **value) == batch


@pytest.mark.parametrize("payloads", [(None, None), (b"", b"")])
def test_a_batch_has_exactly_one_column_of_payloads(payloads: tuple[bytes | None, bytes | None]) -> None:
    with pytest.raises(ValueError, match=r"^a batch has either symbols or bits$"):
        ReportBatch("ab", 1, b"", b"", *payloads).encode()


@given(MESSAGES)
def test_message_round_trips(message: Message) -> None:
    assert Message(**through_avro("message", message.to_avro())) == message


@given(REJECTED)
def test_rejected_round_trips(rejected: Rejected) -> None:
    assert Rejected.from_avro(through_avro("rejected", rejected.to_avro())) == rejected


@given(STATISTICS)
def test_statistics_round_trip(statistic: Statistic) -> None:
    read = Statistic.from_avro(through_avro("statistic", statistic.to_avro()))
    assert read == statistic
    assert hash(read) == hash(statistic)
    assert read.n == statistic.accounting.counted
    assert read.cells.dtype == statistic.cells.dtype


@given(ESTIMATES)
def test_estimates_round_trip(estimate: Estimate) -> None:
    read = Estimate.from_avro(through_avro("estimate", estimate.to_avro()))
    assert read == estimate
    assert hash(read) == hash(estimate)
    assert all(table.values.dtype == table.stderr.dtype == np.float64 for table in read.tables)


#: Two records that hold arrays.
COUNTED = build.pane([2, 2], "late", 1, supersedes=Superseded(0, 3))
ESTIMATED = build.estimate(COUNTED, [0.5, 0.5], [0.1, 0.1], {"home": (0.1, 0.01)})


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        (COUNTED, "cells", np.array([2, 1])),
        (COUNTED, "cells", np.array([[2, 2]])),
        (COUNTED, "device_digest", "0123456789abcdef"),
        (COUNTED, "flags", ("incomplete",)),
        (ESTIMATED, "tables", build.tables([0.5, 0.5], [0.1, 0.1], {"home": (0.1, 0.02)}, n=4)),
        (ESTIMATED, "tables", build.tables([0.5, 0.25], [0.1, 0.1], {"home": (0.1, 0.01)}, n=4)),
        (ESTIMATED, "tables", ESTIMATED.tables[:2]),
    ],
)
def test_records_with_arrays_are_equal_in_all_fields_or_not_at_all(
    record: Statistic | Estimate, name: str, value: object
) -> None:
    copied, other = deepcopy(record), replace(cast(Any, record), **{name: value})
    assert copied == record
    assert hash(copied) == hash(record)
    assert other != record
    assert record != other
    assert {record, copied, other} == {other, record}
    assert record != "a text"


def test_a_table_is_found_by_its_quantity_and_its_attributes() -> None:
    mean = build.table("mean", [7.0], [0.5], of=("hours",))
    estimate = replace(ESTIMATED, tables=(*ESTIMATED.tables, mean))
    assert estimate.table(TableName.MEAN, ("hours",)) is mean
    assert estimate.table(TableName.MEAN) is None
    assert estimate.table(TableName.HIDDEN) is ESTIMATED.tables[1]


@given(ACCOUNTING, ACCOUNTING, ACCOUNTING)
def test_accounting_is_a_commutative_monoid(a: Accounting, b: Accounting, c: Accounting) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Accounting() == a


@given(COUNTERS, COUNTERS, COUNTERS, COUNTERS, COUNTERS, st.integers(-2, 2))
def test_accounting_closes_if_every_report_went_somewhere(
    counted: int, duplicate: int, late: int, rejected: int, missing: int, lost: int
) -> None:
    received = counted + duplicate + late + rejected + lost
    assert Accounting(received, counted, duplicate, late, rejected, missing).closes() == (lost == 0)


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1767258000007, "2026-01-01T09:00:00.007Z"),
        (1767258000500, "2026-01-01T09:00:00.500Z"),
    ],
)
def test_iso(milliseconds: int, text: str) -> None:
    assert iso(milliseconds) == text


LOSSES = st.builds(
    lambda source, first, more: Missing(source, first, first + more, 0, 0),
    st.sampled_from(["t/0", "t/1", "t/10"]),
    st.integers(0, 20),
    st.integers(0, 8),
)


@given(st.lists(LOSSES, max_size=8))
def test_a_message_is_missing_once_however_often_it_was_found_missing(records: list[Missing]) -> None:
    each = {(record.source, number) for record in records for number in range(record.first, record.last + 1)}
    assert missing_messages(records) == missing_messages(records[::-1]) == len(each)
    assert [record.count for record in records] == [record.last + 1 - record.first for record in records]


def test_a_record_of_no_missing_message_is_refused() -> None:
    assert Missing.from_avro(Missing("t/0", 5, 5, 0, 0).to_avro()).count == 1
    with pytest.raises(ValueError, match=r"^the last of the missing messages, 4, is before the first, 5$"):
        Missing.from_avro(Missing("t/0", 5, 4, 0, 0).to_avro())


class Hostile(Mapping[str, str]):
    """So many attributes that nobody may go through them."""

    def __getitem__(self, name: str) -> str:
        return "x" * 300_000

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        raise AssertionError

    def __len__(self) -> int:
        raise AssertionError


@pytest.mark.parametrize("attributes", [{}, {"trace": "0af7"}, {SENDER.upper(): "x"}])
def test_other_attributes_are_dropped(attributes: dict[str, str]) -> None:
    assert known_attributes(attributes) is NO_ATTRIBUTES


@given(st.dictionaries(st.text() | st.sampled_from(KNOWN_ATTRIBUTES), st.text(max_size=MAX_VALUE_BYTES // 4)))
def test_short_values_are_kept_as_they_are(attributes: dict[str, str]) -> None:
    assert known_attributes(attributes) == {name: attributes[name] for name in KNOWN_ATTRIBUTES if name in attributes}


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=MAX_VALUE_BYTES // 4))
def test_long_values_are_cut_behind_a_character(value: str) -> None:
    kept = known_attributes({SENDER: value})[SENDER]
    size = len(kept.encode())
    assert value.startswith(kept)
    assert kept == value if len(value.encode()) <= MAX_VALUE_BYTES else MAX_VALUE_BYTES - 4 < size <= MAX_VALUE_BYTES


def test_the_work_does_not_grow_with_the_attributes() -> None:
    assert known_attributes(Hostile()) == dict.fromkeys((ATTEMPT, SENDER), "x" * MAX_VALUE_BYTES)


@given(st.lists(LONGS | st.just(0), max_size=40))
def test_packed_cells_are_read_back(cells: list[int]) -> None:
    packed = pack_cells(np.array(cells, dtype=np.int64))
    assert unpack_cells(packed).tolist() == cells
    assert len(packed["values"]) + len(packed["indices"] or b"") <= 8 * len(cells)


def test_dense_and_sparse_cells_are_little_endian() -> None:
    assert pack_cells(np.array([1, -2, 300])) == {
        "size": 3,
        "itemsize": 2,
        "indices": None,
        "values": b"\x01\x00\xfe\xff\x2c\x01",
    }
    assert pack_cells(np.eye(1, 100, 98, dtype=np.int64)[0]) == {
        "size": 100,
        "itemsize": 1,
        "indices": b"\x62\x00\x00\x00",
        "values": b"\x01",
    }


def test_few_bytes_do_not_become_any_number_of_cells() -> None:
    packed = {"size": MAX_CELLS + 1, "itemsize": 1, "indices": b"", "values": b""}
    with pytest.raises(ValueError, match="33554433 cells of 1 bytes are impossible"):
        unpack_cells(packed)
