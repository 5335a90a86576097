"""How a collector reads messages: the fields of each report, and whether it counts or rejects it, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from uldp.collector.collections import YEAR_9000, ServedCollection, serve
from uldp.collector.judge import COUNTED, REASONS, Judged, judge
from uldp.collector.parse import MessageParser
from uldp.collector.plain_decoder import Unparsed
from uldp.collector.signals import IMPROBABLE
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.pipelines.clients.sent import UNKNOWN, in_chunks
from uldp.pipelines.results.text import headed
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.codec.registry import RegistryIds
from uldp.schemas.framing import HEADER_SIZE, report_store
from uldp.schemas.reasons import MEANING, REMEDY, Reason
from uldp.schemas.records import Message, iso
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import quote

#: Verdicts on reports, other than the reasons for which a collector rejects them.
GOOD, NOT_JUDGED = "counted", "not judged"


@dataclass
class Inspection:
    """What a collector with some specs makes of messages."""

    specs: Sequence[CollectionSpec]  # the specs; none, if only the messages themselves are to be read
    registry_ids: Mapping[int, str] | None = None  # what the ids of a schema registry mean, as the collector is told
    #: The number of reports with each verdict: ``GOOD``, ``NOT_JUDGED`` or a reason.
    verdicts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._served: Mapping[CollectionKey, ServedCollection] = serve(self.specs) if self.specs else {}
        self._parser = MessageParser(self._served)
        self._registry = RegistryIds(self.registry_ids or {})

    @property
    def reports(self) -> int:
        """The number of reports; a message that cannot be read counts as one."""
        return self.verdicts.total()

    @property
    def rejected(self) -> int:
        """The number of reports that the collector would reject."""
        return self.reports - self.verdicts[GOOD] - self.verdicts[NOT_JUDGED]

    def lines(self, messages: Iterator[Message], first: int) -> Iterator[str]:
        """Yield lines about the first reports of messages, and count all verdicts; ``UNKNOWN`` ages are not judged."""
        for message in messages:
            start = self.reports
            yield from self._describe(message, first - start)
            if self.reports >= first:
                break
        for chunk in in_chunks(messages):
            self.read(chunk)

    def protocol(self, spec: CollectionSpec) -> LdpProtocol:
        """Return the protocol of one of the specs."""
        return self._served[spec.key].protocol

    def read(self, messages: Sequence[Message]) -> list[Judged]:
        """Read messages, count the verdicts, and return the reports that could be parsed."""
        unparsed, judged = self._read(messages)
        self._count(unparsed, judged)
        return judged

    def _read(self, messages: Sequence[Message]) -> tuple[list[Unparsed], list[Judged]]:
        parsed, unparsed = self._parser.parse(self._bodies(messages))
        published = np.array([message.publish_time for message in messages], dtype=np.int64)
        judged: list[Judged] = []
        for reports in parsed:
            known = published[reports.origins]
            at = np.where(known == UNKNOWN, reports.event_times, known)
            judged.append(judge(reports, np.clip(at, 0, YEAR_9000 - 1), judge_lateness=False))
        return unparsed, judged

    def _bodies(self, messages: Sequence[Message]) -> Bodies:
        return self._registry.reframed(Bodies.of([message.data for message in messages]))

    def _count(self, unparsed: Iterable[Unparsed], judged: Iterable[Judged]) -> None:
        for each in unparsed:
            self.verdicts[self._verdict(each.reason)] += each.reports * len(each.origins)
        for of in judged:
            for verdict, number in enumerate(np.bincount(of.verdicts).tolist()):
                if number:
                    self.verdicts[GOOD if verdict == COUNTED else REASONS[verdict]] += number

    def _verdict(self, reason: Reason) -> str:
        """Return a reason as a verdict; without specs, no collection is known."""
        return NOT_JUDGED if reason is Reason.UNKNOWN_COLLECTION and not self.specs else reason

    def _describe(self, message: Message, most: int) -> Iterator[str]:
        """Yield lines about a message and up to ``most`` of its reports, and count all of its reports."""
        unparsed, judged = self._read([message])
        self._count(unparsed, judged)
        kept = "" if message.publish_time == UNKNOWN else f", published {_time(message.publish_time)}"
        yield f"message of {len(message.data):,} bytes{kept}"
        yield from _envelope(self._bodies([message])[0])
        for each in unparsed:
            verdict = self._verdict(each.reason)
            if verdict == NOT_JUDGED:
                yield headed("verdict", f"{NOT_JUDGED}; give the spec of this collection by --spec")
            else:
                yield from _rejected(each.reason, self._parser.detail(self._bodies([message]), 0))
        for of in judged:
            many = len(of.verdicts)
            for number in range(min(many, most)):
                if of.parsed.batched:
                    yield f" report {number + 1:,} of {many:,}"
                yield from _report(of, number)


def _envelope(data: bytes) -> Iterator[str]:
    """Yield lines about the framing, and about the fields that all reports of a message share."""
    header = data[:HEADER_SIZE]
    yield headed("header", f"{header[:2].hex()} {header[2:].hex()}".strip() or "none")
    try:
        name, record = report_store().decode(data)
    except ValueError:  # the collector says why
        return
    yield headed("schema", name)
    yield headed("collection", f"{quote(record['collection'])} version {record['version']}")
    if name == "uldp.Report":
        payload = record["payload"]
        index, kind = (1, f"{len(payload):,} bytes") if isinstance(payload, bytes) else (0, f"the symbol {payload}")
        yield headed("report_id", record["report_id"].hex())
        yield headed("event_time", _time(record["event_time"]))
        yield headed("union index", f"{index}: {kind}")
    else:
        ((column, values),) = record["payload"].items()
        yield headed("report_ids", f"{len(record['report_ids']):,} bytes")
        yield headed("event_times", f"{len(record['event_times']):,} bytes")
        yield headed("union index", f"{['symbols', 'bits'].index(column)}: {len(values):,} bytes of {column}")


def _report(of: Judged, row: int) -> Iterator[str]:
    """Yield lines about one report, of which ``_envelope`` has shown no more than what it shares with others."""
    parsed = of.parsed
    if parsed.batched:
        yield headed("report_id", parsed.report_ids[row].tobytes().hex())
        yield headed("event_time", _time(int(parsed.event_times[row])))
    verdict = int(of.verdicts[row])
    if verdict != COUNTED:
        yield from _rejected(REASONS[verdict], of.detail(row))
        return
    cell = parsed.payloads[row]
    payload = cell.tobytes() if isinstance(cell, np.ndarray) else int(cell)
    name = _name(parsed.collection(row), payload)
    yield headed("payload", parsed.collection(row).mechanism.describe(payload) + (f", {name}" if name else ""))
    if of.signals[row] >= IMPROBABLE:
        yield headed("improbable", "fewer than one in a million right devices send such a payload")
    yield headed("verdict", GOOD)


def _name(served: ServedCollection, payload: int | bytes) -> str:
    """Return the label or the tag of a payload, if payloads are the symbols of Z; else an empty text."""
    variable = served.spec.variables.get("")
    if variable is None or not served.mechanism.bare.reports_symbols or any(variable.zones):
        return ""
    assert isinstance(payload, int)
    names = [f"the tag {quote(tag.name)}" for tag in variable.tags]
    if payload >= variable.size:
        return names[payload - variable.size]
    return quote(variable.labels[payload]) if variable.names else ""


def _rejected(reason: Reason, detail: str) -> Iterator[str]:
    yield headed("verdict", f"rejected as {reason}: {MEANING[reason]}")
    yield headed("detail", detail)
    yield headed("remedy", REMEDY[reason])


def _time(milliseconds: int) -> str:
    text = f" ({iso(milliseconds)})" if 0 <= milliseconds < YEAR_9000 else ""
    return f"{milliseconds}{text}"
