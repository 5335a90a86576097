"""What a coder writes it reads back, and it writes no pickles."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from apache_beam.coders import Coder
from apache_beam.coders.typecoders import registry
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests import build
from tests.collector.test_partial import PARTS, span, value, values
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.partial import Partial
from uldp.collector.signals import SenderCounts
from uldp.mechanisms.protocol.cells import SparseCells, as_dense
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import SKEW_RANGES, Accounting, Pane, PaneKind, Sender, Signals, Superseded
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.coders import (
    EstimateCoder,
    MessageCoder,
    MissingCoder,
    MixedColumnsCoder,
    PartialCoder,
    RejectedCoder,
    ReportColumnsCoder,
    StateLayoutError,
    StatisticCoder,
)
from uldp.transforms.io.chunks import Chunk, ChunkCoder

LONGEST = 2**63 - 1

SUPPORT = Statistic(
    "größe",
    2**31 - 1,
    "0123456789abcdef",
    -LONGEST,
    LONGEST,
    Pane(PaneKind.LATE, 7),
    Accounting(LONGEST, 2, 3, 4, 5, 6),
    ("incomplete", "ü"),
    Superseded(6, LONGEST),
    Signals((1, 2), (LONGEST,), 3, Sender("00ff", LONGEST)),
    cells=np.array([0, LONGEST, -1], dtype=np.int64),
)
ESTIMATE = build.estimate(
    SUPPORT,
    [0.1, -0.2, 1e-300],
    [0.0, np.inf, 5.0],
    {"zuhause": (-0.01, 0.5), "b": (0.0, 0.0)},
    mechanism="urr",
    epsilon=0.1,
    estimator="norm-sub",
)
WITHOUT_PRIVACY = build.estimate(SUPPORT, [], [], mechanism="identity", epsilon=None)
REJECTED = Rejected(
    "decode", "malformed", "détail", (b"\xc3\x01",), MappingProxyType({"k": "ü"}), (LONGEST,), "000.avro:3", 2, "0.1.0"
)


@pytest.mark.parametrize(
    ("coder", "record"),
    [
        (StatisticCoder(), SUPPORT),
        (EstimateCoder(), ESTIMATE),
        (EstimateCoder(), WITHOUT_PRIVACY),
        (RejectedCoder(), REJECTED),
        (MissingCoder(), Missing("tö/0", 0, LONGEST, -LONGEST, LONGEST)),
    ],
)
def test_records_round_trip(coder: Any, record: Any) -> None:
    read = coder.decode(coder.encode(record))
    assert type(read) is type(record)
    assert read.to_avro() == record.to_avro()


@given(
    st.builds(Message, st.binary(), st.integers(-LONGEST, LONGEST), st.dictionaries(st.text(), st.text()), st.text())
)
def test_messages_round_trip_with_their_position(message: Message) -> None:
    assert MessageCoder().decode(MessageCoder().encode(message)) == message


@st.composite
def report_columns(draw: st.DrawFn) -> ReportColumns:
    n, width = draw(st.integers(0, 6)), draw(st.integers(0, 5))
    payloads = (
        hnp.arrays(np.uint8, (n, width)) if width else hnp.arrays(np.uint32, n)  # bits of that many bytes, or symbols
    )
    return ReportColumns(
        draw(st.text(max_size=64)),
        draw(st.integers(0, 2**31 - 1)),
        draw(hnp.arrays(np.uint64, (n, 2))),
        draw(hnp.arrays(np.int64, n) | st.integers(-LONGEST, LONGEST).map(lambda each: np.full(n, each))),
        draw(payloads),
        draw(hnp.arrays(np.uint8, n)),
    )


@given(report_columns())
def test_report_columns_round_trip(columns: ReportColumns) -> None:
    read = ReportColumnsCoder().decode(ReportColumnsCoder().encode(columns))
    assert (read.collection, read.version) == (columns.collection, columns.version)
    for name in ("report_ids", "slices", "payloads", "signals"):
        np.testing.assert_array_equal(getattr(read, name), getattr(columns, name), strict=True)


@given(st.lists(report_columns(), max_size=3))
def test_mixed_columns_round_trip(parts: list[ReportColumns]) -> None:
    coder, one = MixedColumnsCoder(), ReportColumnsCoder()
    encoded = coder.encode(MixedColumns(tuple(parts)))
    assert list(map(one.encode, coder.decode(encoded))) == list(map(one.encode, parts))
    once = sum(8 * (len(part) - 1) for part in parts if len({*part.slices.tolist()}) == 1)
    assert len(encoded) == coder.estimate_size(MixedColumns(tuple(parts))) - once


def test_report_columns_that_are_not_contiguous_round_trip() -> None:
    ids, signals = np.arange(20, dtype=np.uint64).reshape(10, 2), np.arange(10, dtype=np.uint8)
    every_third = ReportColumns("c", 1, ids[::3], np.arange(10)[::3], np.arange(10, dtype=np.uint32)[::3], signals[::3])
    read = ReportColumnsCoder().decode(ReportColumnsCoder().encode(every_third))
    assert read.slices.tolist() == read.payloads.tolist() == read.signals.tolist() == [0, 3, 6, 9]
    assert read.report_ids.tolist() == [[0, 1], [6, 7], [12, 13], [18, 19]]


@given(
    st.none() | hnp.arrays(np.int64, st.integers(1, 6)),
    st.tuples(*[st.integers(0, LONGEST)] * 6).map(lambda numbers: Accounting(*numbers)),
    st.integers(0, 2 * SKEW_RANGES - 1),
    st.integers(0, LONGEST),
    st.none() | st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
)
def test_the_part_of_a_window_round_trips(
    cells: Any, accounting: Accounting, skew: int, improbable: int, senders: list[int] | None
) -> None:
    written = build.part(
        cells,
        accounting,
        skew=np.bincount([skew], minlength=2 * SKEW_RANGES),
        improbable=improbable,
        senders=None if senders is None else SenderCounts.of(np.array(senders, dtype=np.uint64)),
    )
    read = PartialCoder().decode(PartialCoder().encode(written))
    assert value(read) == value(written)
    if read.cells is not None:
        assert as_dense(read.cells).dtype == np.int64


def test_the_ends_of_windows_round_trip() -> None:
    whole = replace(part_of(10, 3), ends={0: np.array([5, 1 << 40])}).at(7) + part_of(10, 3).at(8)
    (ends,) = PartialCoder().decode(PartialCoder().encode(whole)).ends.items()
    assert (ends[0], ends[1].tolist(), ends[1].dtype) == (7, [5, 1 << 40], np.dtype(np.int64))
    assert [partial.ends.keys() for _, partial in whole.slices()] == [{0}, set()]


@given(PARTS)
def test_parts_of_slices_round_trip(parts: list[tuple[int, Partial]]) -> None:
    written = span(parts)
    assert values(PartialCoder().decode(PartialCoder().encode(written))) == values(written)


def test_few_counts_of_many_symbols_are_written_sparsely() -> None:
    counts = SparseCells(1 << 20, np.array([3, (1 << 20) - 1]), np.array([1, 2**40]))
    encoded = PartialCoder().encode(build.part(counts))
    assert len(encoded) < 100
    read = PartialCoder().decode(encoded).cells
    assert isinstance(read, SparseCells)
    np.testing.assert_array_equal(read.dense(), counts.dense(), strict=True)


def part_of(n: int, size: int) -> Partial:
    """The part of a window with n reports, whose clocks are a little wrong."""
    rng = np.random.default_rng(n)
    skew = np.zeros(2 * SKEW_RANGES, dtype=np.int64)
    skew[:8] = rng.multinomial(n, np.full(8, 1 / 8))
    return build.part(rng.multinomial(n, np.full(size, 1 / size)), Accounting(n, n), skew=skew)


@pytest.mark.parametrize(
    ("part", "most"),
    [
        (part_of(1_000, 100), 197),
        (part_of(1_000_000, 100), 317),
        (part_of(10_000, 625), 722),
        (part_of(10_000_000, 625), 1367),
        (span([(hour, part_of(10_000, 625)) for hour in range(24)]), 16_661),
        (span([(hour, part_of(10_000_000, 625)) for hour in range(24)]), 32_141),
        (build.part(accounting=Accounting(missing=5)), 42),
        (build.part(accounting=Accounting(70_000, rejected=70_000)), 53),
        (build.part(senders=SenderCounts.of(np.arange(3, dtype=np.uint64))), 97),
    ],
)
def test_state_is_small(part: Partial, most: int) -> None:
    assert len(PartialCoder().encode(part)) <= most


def test_state_of_another_layout_is_refused() -> None:
    encoded = PartialCoder().encode(Partial())
    with pytest.raises(
        StateLayoutError,
        match=r"^another version of uldp wrote these partial counts: layout 2, expected 4; start .*runbook",
    ):
        PartialCoder().decode(b"\x02" + encoded[1:])


CODERS: dict[type, type[Coder]] = {
    Statistic: StatisticCoder,
    Estimate: EstimateCoder,
    Rejected: RejectedCoder,
    Missing: MissingCoder,
    Message: MessageCoder,
    MixedColumns: MixedColumnsCoder,
    Partial: PartialCoder,
}


@pytest.mark.parametrize(("kind", "coder"), [*CODERS.items(), (Chunk, ChunkCoder)])
def test_beam_takes_our_coder_by_itself(kind: type, coder: type[Coder]) -> None:
    assert isinstance(registry.get_coder(kind), coder)


@pytest.mark.parametrize("coder", CODERS.values())
def test_a_coder_is_deterministic_and_equal_to_its_likes_alone(coder: type[Coder]) -> None:
    assert coder().is_deterministic()
    assert coder() == coder()
    assert hash(coder()) == hash(coder())
    assert not any(coder() == other() for other in CODERS.values() if other is not coder)
