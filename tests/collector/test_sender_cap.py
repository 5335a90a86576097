"""A cap counts the first reports of each sender in a time slice, against a Python dict; the others become records."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, SENDER_KEY, START
from uldp.collector.collections import ServedCollection, serve
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.origins import Origins
from uldp.collector.reader import ReportReader
from uldp.collector.sender_cap import CountedOfSenders, by_sender, first_of_senders, over_limit
from uldp.schemas.reasons import Reason
from uldp.schemas.records import SENDER, Message, Report
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec

PUBLISHED = START + 3 * HOUR
CAPPED = build.spec(limits={"max_reports_per_sender": 2, "cap_senders": True})
BITS = build.spec(
    collection="bits",
    mechanism={"name": "oue", "epsilon": 1.0},
    limits={"max_reports_per_sender": 2, "cap_senders": True},
)
FREE = build.spec(collection="free")
SERVED = serve([CAPPED, BITS, FREE])


def served(spec: CollectionSpec = CAPPED) -> ServedCollection:
    return SERVED[spec.key]


def message(number: int, sender: str | None, *reports: Report) -> Message:
    """A report, or a batch of several, at a position of its own."""
    data = (reports[0] if len(reports) == 1 else build.batch(reports)).encode()
    return Message(data, PUBLISHED, {} if sender is None else {SENDER: sender}, f"topic/0/{number}")


def decoded(messages: Sequence[Message]) -> list[ReportColumns]:
    reader = ReportReader([CAPPED, BITS, FREE], judge_lateness=False, sender_key=SENDER_KEY)
    return reader.decode(messages).columns


def reports_in(records: Sequence[Rejected]) -> Counter[tuple[str, bytes, int, int | bytes]]:
    """Collection, id, event time and payload of each report that the messages of records hold."""
    messages = [Message(body, time) for record in records for body, time in record.each()]
    found: Counter[tuple[str, bytes, int, int | bytes]] = Counter()
    for columns in decoded(messages):
        assert columns.origins is not None
        payloads = columns.payloads.tolist() if columns.payloads.ndim == 1 else map(bytes, columns.payloads)
        ids, times = map(bytes, columns.report_ids.view(np.uint8)), columns.origins.event_times.tolist()
        found.update(zip([columns.collection] * len(columns), ids, times, payloads, strict=True))
    return found


def sent(*reports: Report) -> Counter[tuple[str, bytes, int, int | bytes]]:
    return Counter((each.collection, each.report_id, each.event_time, each.payload) for each in reports)


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), max_size=6), st.integers(1, 5))
def test_the_first_reports_of_each_sender_are_let_through(bundles: list[list[int]], cap: int) -> None:
    counted: dict[int, int] = {}
    seen: Counter[int] = Counter()
    for senders in bundles:
        admitted, new, counts = first_of_senders(counted, np.array(senders, dtype=np.uint64), cap)
        expected = []
        for sender in senders:
            seen[sender] += 1
            expected.append(seen[sender] <= cap)
        assert admitted.tolist() == expected
        added = Counter(sender for sender, let in zip(senders, expected, strict=True) if let)
        assert dict(zip(new.tolist(), counts.tolist(), strict=True)) == added
    assert counted == {sender: min(n, cap) for sender, n in seen.items()}


def test_slices_and_versions_are_counted_apart_and_state_says_what_was_counted() -> None:
    times = [START, START, START + HOUR, START, START + HOUR]
    reports = [build.report(number, 0, time) for number, time in enumerate(times)]
    (part,) = decoded([message(number, "one", each) for number, each in enumerate(reports)])
    counted = CountedOfSenders()
    admitted, entries = counted.admit(served(), part)
    assert admitted.tolist() == [True, True, True, False, True]
    assert CountedOfSenders.read(entries)._counts == counted._counts
    assert CountedOfSenders.read(entries).admit(served(), part)[0].tolist() == [False] * 5


def test_all_reports_of_a_sender_reach_one_shard_and_what_has_no_cap_none() -> None:
    names = [f"sender {number % 20}" for number in range(200)]
    messages = [message(n, name, build.report(n, 0, START + n % 3 * HOUR)) for n, name in enumerate(names)]
    free = message(999, "sender 0", build.report(999, 0, key=FREE.key))
    columns = MixedColumns(tuple(decoded([*messages, free])))
    passed, shards = by_sender(columns, SERVED, 8, forgets=True)
    assert [(part.collection, len(part), part.origins) for part in passed] == [("free", 1, None)]
    of_sender: dict[int, set[int]] = {}
    for (shard, closes), parts in shards.items():
        for part in parts:
            assert part.origins is not None
            assert {*part.slices.tolist()} == {closes - served().closes_after}
            for sender in part.origins.senders.tolist():
                of_sender.setdefault(sender, set()).add(shard)
    assert sum(len(part) for parts in shards.values() for part in parts) == 200
    assert len(of_sender) == 20
    assert all(len(found) == 1 for found in of_sender.values())
    assert len(set.union(*of_sender.values())) > 1
    assert {closes for _, closes in by_sender(columns, SERVED, 8, forgets=False)[1]} == {0}


@pytest.mark.parametrize("spec", [CAPPED, BITS])
def test_records_hold_the_reports_with_what_their_messages_said(spec: CollectionSpec) -> None:
    payload = 1 if spec is CAPPED else b"\x80"
    reports = [build.report(number, payload, START + number, spec.key) for number in range(12)]
    messages = [
        message(7, "a", *reports[:4]),
        message(5, "b", reports[4]),
        message(6, "b", *reports[5:7]),
        message(8, None, reports[7]),
        Message(reports[8].encode(), START + 1, {SENDER: "b", "uldp-attempt": "3", "other": "dropped"}, "nowhere"),
        Message(reports[9].encode(), START + 2, {SENDER: "b"}),
        *(message(10 + row, "b", each) for row, each in enumerate(reports[10:])),
    ]
    parts = decoded(messages)
    records = [record for part in parts for record in over_limit(served(spec), part)]
    assert {record.reason for record in records} == {Reason.OVER_SENDER_LIMIT}
    assert sum(record.reports for record in records) == 12
    assert reports_in(records) == sent(*reports)
    found = {
        (record.source, record.attributes.get(SENDER), record.attempt, record.publish_times[0], record.reports)
        for record in records
    }
    assert {
        ("topic/0/7", "a", 1, PUBLISHED, 4),
        ("topic/0/6", "b", 1, PUBLISHED, 2),
        ("topic/0/8", None, 1, PUBLISHED, 1),
        ("nowhere", "b", 3, START + 1, 1),
        ("", "b", 1, START + 2, 1),
    } < found
    assert not any("other" in record.attributes for record in records)
    details = {record.attributes.get(SENDER): record.detail for record in records}
    assert details["a"] == "the window has 2 reports of its sender already"
    assert details[None] == "the window has 2 reports of messages that name no sender already"


HOSTILE: Mapping[str, str] = {
    "empty": "",
    "of a megabyte": "x" * 1_000_000,
    "no utf-8": "\udcff\ud800",
    "control characters": "\x00\n\x1b[2J",
}


@pytest.mark.parametrize("sender", HOSTILE.values(), ids=HOSTILE)
def test_any_sender_is_one_sender(sender: str) -> None:
    messages = [message(number, sender, build.report(number, 0)) for number in range(4)]
    (part,) = decoded([*messages, message(4, "another", build.report(4, 0))])
    admitted, _ = CountedOfSenders().admit(served(), part)
    assert admitted.tolist() == [True, True, False, False, True]
    assert part.origins is not None
    assert part.origins.nbytes < 5_000  # of the name, 256 bytes are kept
    of_coder = Origins.read(b"".join(map(bytes, part.origins.pieces())), len(part))
    assert of_coder.stamps.tolist() == part.origins.stamps.tolist()
    (record,) = over_limit(served(), part.take(np.array([2, 3])))
    assert record.attributes[SENDER].encode("utf-8", "replace") == sender[:256].encode("utf-8", "replace")


def test_reports_without_a_sender_are_those_of_one() -> None:
    (part,) = decoded([message(number, None, build.report(number, 0)) for number in range(4)])
    assert CountedOfSenders().admit(served(), part)[0].tolist() == [True, True, False, False]


def test_a_sliding_window_gives_each_period_a_part_of_the_limit() -> None:
    window = {"size": "1h", "period": "10m"}
    limits = {"max_reports_per_sender": 20, "cap_senders": True}
    (sliding,) = serve([build.spec(window=window, limits=limits)]).values()
    assert sliding.sender_cap == 3
    with pytest.raises(ValueError, match="must be 6 or more with cap_senders: a window has 6 periods"):
        build.spec(window=window, limits=limits | {"max_reports_per_sender": 5})


def test_a_cap_needs_its_number() -> None:
    with pytest.raises(ValueError, match="cap_senders needs max_reports_per_sender"):
        build.spec(limits={"cap_senders": True})
