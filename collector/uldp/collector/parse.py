"""Parse messages into columns of reports, those of collections with the same rules together, before any check."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import NamedTuple

import numpy as np

from uldp.collector.collections import ServedCollection
from uldp.collector.plain_decoder import Faulty, Group, PayloadFault, PlainDecoder, Record, Unparsed
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.arrays import Payloads, ReportIds, Rows, Times
from uldp.schemas.codec.columnar import FastRows, Layout, decode_columns, report_schema
from uldp.schemas.codec.packed import Bodies, PackedMessages
from uldp.schemas.specs.collection import CollectionKey

#: Batches of collections with the same rules are joined up to the first number of reports. Those of a collection with
#: the second number or more stay alone: a copy of them takes longer than to judge them apart.
_JOINED, _WORTH_A_PART = 1 << 16, 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class ParsedReports:
    """Reports of one or more collections with the same rules after decoding, before any check: judged together."""

    collections: Sequence[ServedCollection]  # the collections, each of which has one or more reports
    ends: Sequence[int]  # shape (k,): where the reports of each collection end
    #: Shape (n,): index of the message that held each report. If the messages are batches, the reports of each come one
    #: after the other, and the batches of one collection in ascending order.
    origins: Rows
    batched: bool  # whether the messages are batches, which can hold several reports
    report_ids: ReportIds
    event_times: Times
    payloads: Payloads
    fault: PayloadFault | None = None  # why none of these payloads can be counted; None if they fit the collections

    def __len__(self) -> int:
        return len(self.origins)

    def spans(self) -> Iterator[tuple[ServedCollection, slice]]:
        """Yield each collection, and the rows of its reports."""
        return zip(self.collections, map(slice, [0, *self.ends], self.ends), strict=True)

    def collection(self, row: int) -> ServedCollection:
        """Return the collection of the report in a row."""
        return self.collections[bisect_right(self.ends, row)]


class MessageParser:
    """Parses messages, thousands at a time; of other collections than the served ones, it rejects them."""

    def __init__(self, served: Mapping[CollectionKey, ServedCollection]) -> None:
        self._served = served
        # Those with the same rules come one after the other, so that ``parse`` finds them together.
        rules = {each.rules: number for number, each in enumerate(served.values())}
        self._by_layout = sorted(served.values(), key=lambda each: rules[each.rules])
        schema = report_schema()
        self._layouts = [Layout.of(schema, *each.spec.key, each.mechanism.form.width) for each in self._by_layout]
        self._plain = PlainDecoder(served, self._layouts)

    def parse(self, messages: Bodies) -> tuple[Iterator[ParsedReports], list[Unparsed]]:
        """Parse the bodies of messages; no input raises.

        Reports that can be judged together come together, because to judge few takes as long as to judge many, and then
        the messages that hold none. The iterator makes the columns when they are asked for, so that they are in the
        caches.
        """
        found, rest = decode_columns(messages, self._layouts)
        plain = self._plain.decode(messages, rest)
        return (
            chain(
                chain.from_iterable(map(self._from_columns, found)),
                map(_from_faulty, plain.faulty),
                (_from_reports(self._served[key], fault, records) for (key, fault), records in plain.singles.items()),
                self._alike(plain.batches),
            ),
            plain.unparsed,
        )

    def detail(self, messages: Bodies, row: int) -> str:
        """Return what is wrong with a message of the second result of ``parse``."""
        return self._plain.detail(messages[row])

    def _alike(self, batches: Mapping[Group, list[Record]]) -> Iterator[ParsedReports]:
        """Yield the columns of batches, those of collections with the same rules together."""
        waiting: dict[str, list[_Batches]] = defaultdict(list)
        reports: Counter[str] = Counter()
        for (key, fault), records in batches.items():
            part = _Batches.of(self._served[key], records)
            if not part.reports:  # a batch may hold none
                continue
            if fault is not None or part.reports >= _WORTH_A_PART:
                yield _from_batches([part], fault)
                continue
            rules = part.served.rules
            waiting[rules].append(part)
            reports[rules] += part.reports
            if reports[rules] >= _JOINED:
                del reports[rules]
                yield _from_batches(waiting.pop(rules))
        yield from map(_from_batches, waiting.values())

    def _from_columns(self, fast: FastRows) -> Iterator[ParsedReports]:
        collections = [self._by_layout[layout] for layout in fast.layouts]
        start = 0
        for _, alike in groupby(zip(collections, fast.ends, strict=True), lambda each: each[0].rules):
            of_rules, ends = zip(*alike, strict=True)
            rows = slice(start, ends[-1])
            yield ParsedReports(
                of_rules,
                [end - start for end in ends],
                fast.rows[rows],
                False,
                fast.report_ids[rows],
                fast.event_times[rows],
                fast.payloads[rows],
            )
            start = ends[-1]


class Openings:
    """Parses each message by the collections that were open when it was published.

    Before a spec opens, its reports are those of an unknown version. So what becomes of a report does not depend on
    when a worker has learned of its spec, if that is before the spec opens: a message from before has the same verdict,
    reason and detail as if the spec did not exist. Messages of other collections hold no reports.
    """

    def __init__(self, specs: SharedSpecs) -> None:
        self.edition = specs.edition  # first of all: if the specs change meanwhile, this is not their newest edition
        self._served = dict(specs.served)
        self._times: Times = np.array(sorted({each.opens for each in self._served.values()} - {0}), dtype=np.int64)
        self._parsers: dict[int, MessageParser] = {}

    def split(self, messages: PackedMessages) -> Iterator[tuple[PackedMessages, MessageParser]]:
        """Yield the messages with their parser, together those for which the same collections are open."""
        if not len(messages):
            return
        times = messages.publish_times
        first, last = np.searchsorted(self._times, [times.min(), times.max()], side="right").tolist()
        opened = np.searchsorted(self._times, times, side="right") if first < last else None
        for number in [first] if opened is None else np.unique(opened).tolist():
            if number not in self._parsers:
                until = int(self._times[number - 1]) if number else 0
                served = {key: each for key, each in self._served.items() if each.opens <= until}
                self._parsers[number] = MessageParser(served)
            some = messages if opened is None else messages.take(np.flatnonzero(opened == number))
            yield some, self._parsers[number]


def _from_faulty(faulty: Faulty) -> ParsedReports:
    """Make columns of reports whose payloads do not fit; zeros replace these."""
    served, fault, origins, ids, times = faulty
    payloads = np.zeros(len(origins), dtype=np.uint32)
    return ParsedReports([served], [len(origins)], origins, False, ids, times, payloads, fault)


def _from_reports(served: ServedCollection, fault: PayloadFault | None, reports: list[Record]) -> ParsedReports:
    """Make columns of single reports that share one fault or have none. Zeros replace payloads that do not fit."""
    payloads: Payloads
    if fault is not None:
        payloads = np.zeros(len(reports), dtype=np.uint32)
    elif served.mechanism.form.width is None:
        payloads = np.array([record["payload"] for _, record in reports], dtype=np.uint32)
    else:
        joined = b"".join([record["payload"] for _, record in reports])
        payloads = np.frombuffer(joined, np.uint8).reshape(-1, served.mechanism.form.width)
    return ParsedReports(
        [served],
        [len(reports)],
        np.array([origin for origin, _ in reports], dtype=np.intp),
        False,
        np.frombuffer(b"".join([record["report_id"] for _, record in reports]), np.uint64).reshape(-1, 2),
        np.array([record["event_time"] for _, record in reports], dtype=np.int64),
        payloads,
        fault,
    )


class _Batches(NamedTuple):
    """Batches of one collection and version, and the number of their reports."""

    served: ServedCollection
    reports: int
    records: list[Record]

    @classmethod
    def of(cls, served: ServedCollection, records: list[Record]) -> "_Batches":
        return cls(served, sum(len(record["event_times"]) for _, record in records) // 8, records)


def _from_batches(parts: Sequence[_Batches], fault: PayloadFault | None = None) -> ParsedReports:
    """Join the columns of batches that share one fault or have none; checking them all costs little more than one."""
    origins, batches = zip(*chain.from_iterable(part.records for part in parts), strict=True)
    times = np.frombuffer(b"".join([batch["event_times"] for batch in batches]), np.int64)
    column = b"".join([next(iter(batch["payload"].values())) for batch in batches])
    payloads: Payloads
    if "symbols" in batches[0]["payload"]:
        payloads = np.frombuffer(column, np.uint32)
    else:
        payloads = np.frombuffer(column, np.uint8).reshape(len(times), -1)
    return ParsedReports(
        [part.served for part in parts],
        [*accumulate(part.reports for part in parts)],
        np.repeat(np.array(origins, dtype=np.intp), [len(batch["event_times"]) // 8 for batch in batches]),
        True,
        np.frombuffer(b"".join([batch["report_ids"] for batch in batches]), np.uint64).reshape(-1, 2),
        times,
        payloads,
        fault,
    )
