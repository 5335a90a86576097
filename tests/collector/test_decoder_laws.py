"""The decoder against a judge that looks at one report at a time."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import HOUR, MINUTE, START, batch
from tests.collector.decoding import (
    IMPOSSIBLE_PAYLOAD,
    POSSIBLE_BITS,
    SPECS,
    YEAR,
    YOUNG,
    accounting,
    decode,
    outcomes,
    take_path,
)
from uldp.collector.collections import AMENDABLE_FOR, YEAR_9000
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.framing import HEADER_SIZE, report_store
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds


class Outcome(NamedTuple):
    """Where a report went: counted, late, or the reason; and the time slice in whose accounting it stands."""

    where: str
    slice_start: int | None = None


def judge(report: Report, published: int) -> Outcome:
    """What must become of a report, rule by rule."""
    key = report.collection, report.version
    if key not in SPECS:
        known = report.collection in {collection for collection, _ in SPECS}
        return Outcome(Reason.UNKNOWN_VERSION if known else Reason.UNKNOWN_COLLECTION)
    spec, time = SPECS[key], report.event_time
    slice_size = milliseconds(spec.window.period or spec.window.size)
    named, published_in = time - time % slice_size, published - published % slice_size
    if spec.retired:
        return Outcome(Reason.RETIRED_VERSION, published_in)
    if time < 0 or time >= YEAR_9000:
        refusal = Reason.INVALID_TIME
    elif time > published + milliseconds(spec.limits.max_clock_skew):
        refusal = Reason.TOO_EARLY
    elif time < published - (2 * HOUR if spec is YOUNG else YEAR):
        refusal = Reason.EXPIRED
    else:
        refusal = None
    closed = named + milliseconds(spec.window.size + spec.window.allowed_lateness)
    amendable = published < closed + milliseconds(AMENDABLE_FOR)
    slice_start = named if refusal is None and amendable else published_in
    size = spec.size + len(spec.tags)
    if isinstance(report.payload, bytes) != reports_bits(spec):
        return Outcome(Reason.WRONG_PAYLOAD, slice_start)
    if isinstance(report.payload, bytes):
        if len(report.payload) != math.ceil(size / 8):
            return Outcome(Reason.WRONG_LENGTH, slice_start)
        bits = "".join(f"{byte:08b}" for byte in report.payload)
        ones = sum(bit == "1" for bit, sensitive in zip(bits, spec.sensitive_mask, strict=False) if not sensitive)
        impossible = Reason.IMPOSSIBLE_PAYLOAD if ones > 1 or "1" in bits[size:] else None
    else:
        if report.payload < 0:
            return Outcome(Reason.OUT_OF_DOMAIN, slice_start)
        impossible = Reason.OUT_OF_DOMAIN if report.payload >= size else None
    if refusal is not None:
        return Outcome(refusal, slice_start)
    if impossible is not None:
        return Outcome(impossible, slice_start)
    return Outcome("late" if published >= closed else "counted", slice_start)


def reports_bits(spec: CollectionSpec) -> bool:
    return build_protocol(spec).mechanism.form.width is not None


TIMES = st.sampled_from(
    [-1, 0, YEAR_9000 - 1, YEAR_9000, 2**63 - 1, -(2**63)]
    + [START + offset for offset in (-1, 0, 14 * MINUTE, HOUR - 1, HOUR, HOUR + 10 * MINUTE, HOUR + 10 * MINUTE + 1)]
) | st.integers(START - 2 * HOUR, START + 2 * HOUR)
PUBLISHED = st.sampled_from(
    [START + HOUR, START + HOUR + 30 * MINUTE, START + HOUR + 30 * MINUTE - 1, START + 75 * MINUTE]
)
KEYS = st.sampled_from([*SPECS, *SPECS, *SPECS, ("symbol", 3), ("nobody", 1)])
IDS = st.integers(0, 3).map(lambda number: number.to_bytes(16, "little"))
SYMBOLS = st.integers(0, 12) | st.sampled_from([-1, 2**28, 2**31 - 1])
PACKED = st.sampled_from([*POSSIBLE_BITS, *IMPOSSIBLE_PAYLOAD])
OTHERS = st.sampled_from([b"", b"\0", b"\0\0\0"])


@st.composite
def reports(draw: st.DrawFn) -> Report:
    key = draw(KEYS)
    bits = key in SPECS and reports_bits(SPECS[key])
    payloads = (PACKED | PACKED | OTHERS | SYMBOLS) if bits else (SYMBOLS | SYMBOLS | OTHERS | PACKED)
    return Report(*key, draw(IDS), draw(TIMES), draw(payloads))


@st.composite
def batches(draw: st.DrawFn) -> list[Report]:
    key = draw(st.sampled_from(list(SPECS)))
    payloads: st.SearchStrategy[int | bytes] = st.integers(0, 12) | st.sampled_from([2**31 - 1, 2**31, 2**32 - 1])
    if reports_bits(SPECS[key]):
        payloads = PACKED
    return [
        Report(*key, draw(IDS), draw(TIMES), payload) for payload in draw(st.lists(payloads, min_size=1, max_size=6))
    ]


#: A report, those of a batch, or bytes that are neither; and when they were published.
Arrival = tuple[Report | list[Report] | bytes, int]
JUNK = (
    st.binary(max_size=12)
    | st.builds(lambda report, cut: report.encode()[:cut], reports(), st.integers(0, 24))
    | st.builds(lambda report, tail: report.encode() + tail, reports(), st.binary(min_size=1, max_size=3))
)
ARRIVALS = st.lists(st.tuples(reports() | batches() | JUNK, PUBLISHED), max_size=8)


def as_message(arrival: Arrival) -> Message:
    content, published = arrival
    match content:
        case Report():
            return Message(content.encode(), published)
        case list():
            return Message(batch(content).encode(), published)
        case _:
            return Message(content, published)


def judged(arrivals: Sequence[Arrival]) -> Iterator[tuple[Report, Outcome]]:
    for content, published in arrivals:
        if not isinstance(content, bytes):
            for report in content if isinstance(content, list) else [content]:
                yield report, judge(report, published)


@pytest.fixture(scope="module", params=[1, 4, math.inf], ids=["columnar", "mixed", "plain"])
def min_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        take_path(patch, request.param)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_every_report_goes_where_the_rules_send_it(arrivals: list[Arrival]) -> None:
    decoded = decode(*map(as_message, arrivals))
    wanted: Counter[tuple[Report | bytes, str]] = Counter()
    lines: Counter[tuple[tuple[str, int], int, str]] = Counter()
    for report, (where, slice_start) in judged(arrivals):
        if where == "counted":
            assert slice_start is not None
            wanted[replace(report, event_time=slice_start), where] += 1
        else:
            wanted[report, where] += 1
            if slice_start is not None:
                lines[(report.collection, report.version), slice_start, "late" if where == "late" else "rejected"] += 1
    found = outcomes(decoded)
    junk = Counter(content for content, _ in arrivals if isinstance(content, bytes))
    assert Counter({sent: n for sent, n in found.items() if sent[0] not in junk}) == wanted
    assert found.total() == wanted.total() + junk.total()
    assert accounting(decoded) == {
        (key, start): Accounting(
            received=lines[key, start, "late"] + lines[key, start, "rejected"],
            late=lines[key, start, "late"],
            rejected=lines[key, start, "rejected"],
        )
        for key, start, _ in lines
    }


@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_accounting_closes_call_by_call(arrivals: list[Arrival]) -> None:
    decoded = decode(*map(as_message, arrivals))
    assert decoded.received == sum(len(content) if isinstance(content, list) else 1 for content, _ in arrivals)
    assert decoded.received == sum(map(len, decoded.columns)) + decoded.late_reports + decoded.rejected_reports
    assert all(line.closes() for line in accounting(decoded).values())


@pytest.mark.slow
@pytest.mark.usefixtures("min_rows")
@given(ARRIVALS)
def test_neither_order_nor_company_decides(arrivals: list[Arrival]) -> None:
    messages = [as_message(arrival) for arrival in arrivals]
    together = decode(*messages)
    alone = [decode(message) for message in reversed(messages)]
    assert sum((outcomes(decoded) for decoded in alone), Counter()) == outcomes(together)
    lines: Counter[tuple[tuple[str, int], int]] = Counter()
    for decoded in alone:
        lines.update({slot: line.received for slot, line in accounting(decoded).items()})
    assert lines == {slot: line.received for slot, line in accounting(together).items()}


@pytest.mark.usefixtures("min_rows")
@given(
    st.lists(
        st.binary(max_size=80)
        | st.builds(
            lambda head, body: head + body, st.sampled_from(list(report_store().writers)), st.binary(max_size=80)
        )
        | st.builds(
            lambda data, at, byte: data[: at % len(data)] + bytes([byte]) + data[at % len(data) + 1 :],
            (reports() | batches().map(batch)).map(lambda sent: sent.encode()),
            st.integers(HEADER_SIZE, 200),
            st.integers(0, 255),
        ),
        max_size=8,
    )
)
def test_no_bytes_raise(data: list[bytes]) -> None:
    decoded = decode(*(Message(one, START) for one in data))
    assert decoded.received == sum(map(len, decoded.columns)) + decoded.late_reports + decoded.rejected_reports
    assert all(line.closes() for line in accounting(decoded).values())
