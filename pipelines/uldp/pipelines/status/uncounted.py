"""Reports that were rejected or came late, in groups: how many, when, from whom, and what one of them looks like."""

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

from uldp.collector.signals import digest_of_day, sender_digest
from uldp.pipelines.clients.inspection import GOOD, Inspection
from uldp.pipelines.jobs.sender_key import SENDER_KEY, read_sender_key
from uldp.pipelines.results.files import Damaged, finished
from uldp.pipelines.results.records import records_of
from uldp.pipelines.results.text import number_of
from uldp.schemas.codec.columnar import ID_SIZE
from uldp.schemas.framing import report_store
from uldp.schemas.reasons import MEANING, REMEDY, Reason
from uldp.schemas.records import SENDER, Message, iso
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.message_files import opened
from uldp.transforms.io.stored_files import copies

#: So many senders of a group are told apart; what others sent is counted together.
MOST_SENDERS = 10_000
#: The senders that are shown of a group.
SHOWN = 3
#: Of the sample, these lines say what the group says already.
_KNOWN = ("verdict", "detail", "remedy")


@dataclass
class Group:
    """Messages that were not counted for one reason."""

    name: str  # the reason of rejection; of late reports, the collection and version
    reports: int = 0  # the number of reports
    messages: int = 0  # the number of their messages
    first: int = 0  # the earliest publish time that is stored, in milliseconds
    last: int = 0  # the latest
    #: Reports by the value of the attribute ``uldp-sender``; of messages without it, under None.
    senders: Counter[str | None] = field(default_factory=Counter)
    others: int = 0  # reports of further senders
    sample: Message | None = None  # a message whose bytes are stored; None if there is none
    source: str = ""  # where the sample is in the source
    detail: str = ""  # what was found wrong with one message

    def add(self, reports: int, messages: int, times: Sequence[int], sender: str | None) -> None:
        """Count messages of one sender."""
        self.first = min(*times, self.first) if self.messages else min(times)
        self.last = max(*times, self.last)
        self.reports += reports
        self.messages += messages
        if sender in self.senders or len(self.senders) < MOST_SENDERS:
            self.senders[sender] += reports
        else:
            self.others += reports


def groups_of_rejected(records: Iterable[Rejected]) -> list[Group]:
    """Return the groups of rejected reports by reason, the largest first."""
    groups: dict[str, Group] = {}
    for record in records:
        group = groups.setdefault(record.reason, Group(record.reason))
        group.add(record.reports, record.messages, record.publish_times, record.attributes.get(SENDER))
        if group.sample is None:
            group.source, group.detail = record.source, record.detail
            for body, time in record.each():
                group.sample = Message(body, time, record.attributes, record.source)
                break
    return _ordered(groups)


class Late(NamedTuple):
    """A message of late reports, with what its job has read in it."""

    message: Message
    report: Mapping[str, Any]

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``Message.to_avro`` returned; ValueError if no job has read it."""
        message = Message(value["data"], value["publish_time"], value["attributes"])
        return cls(message, report_store().decode(message.data)[1])


def late_in(folder: Path, damaged: Damaged) -> Iterator[Late]:
    """Read the late reports of a folder; of a file and its copies, one is read."""
    paths = [str(path) for path in finished(folder)]
    _, copied = copies(paths, opened)
    return records_of((Path(path) for path in paths if path not in copied), "message", Late.from_avro, damaged)


def groups_of_late(late: Iterable[Late]) -> list[Group]:
    """Return the groups of late reports by collection and version, the largest first."""
    groups: dict[str, Group] = {}
    for message, report in late:
        ids = report.get("report_ids")
        name = f"{report['collection']} v{report['version']}"
        group = groups.setdefault(name, Group(name))
        reports = 1 if ids is None else len(ids) // ID_SIZE
        group.add(reports, 1, (message.publish_time,), message.attributes.get(SENDER))
        group.sample = group.sample or message
    return _ordered(groups)


def _ordered(groups: Mapping[str, Group]) -> list[Group]:
    return sorted(groups.values(), key=lambda group: (-group.reports, group.name))


@dataclass(frozen=True)
class Digests:
    """Names senders without telling who they are."""

    #: The key of the job's digests; flags then name the same ones. None to draw one for this process.
    key: bytes | None = None
    _drawn: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def of(self, sender: str, time: int) -> str:
        """Return the digest of a sender on the day of a time: 16 hexadecimal digits."""
        return digest_of_day(sender_digest(sender, self.key or self._drawn), time)


def group_lines(group: Group, specs: Sequence[CollectionSpec], digests: Digests) -> Iterator[str]:
    """Yield the lines about a group."""
    noun = number_of(group.reports, "report")
    in_messages = "" if group.messages == group.reports else f" in {number_of(group.messages, 'message')}"
    yield f"{group.name}: {noun}{in_messages}, published from {iso(group.first)} to {iso(group.last)}"
    if group.name in MEANING:
        reason = Reason(group.name)
        yield f"  {'meaning':<11} {MEANING[reason]}"
        yield f"  {'remedy':<11} {REMEDY[reason]}"
    if group.detail:
        yield f"  {'detail':<11} {group.detail}"
    yield f"  {'senders':<11} {_senders_text(group, digests)}"
    if group.sample is None:
        yield f"  {'sample':<11} none: messages like these are counted alone"
        return
    inspection = Inspection(specs)
    lines = list(inspection.lines(iter((group.sample,)), 1))
    yield f"  {'sample':<11} {group.source or 'of an unknown place'}"
    yield from (f"    {line}" for line in lines if line.split(maxsplit=1)[0] not in _KNOWN)
    if group.name in MEANING and inspection.verdicts[GOOD]:
        yield f"  {'now':<11} the specs of these results would count it; uldp replay sends it again"


def _senders_text(group: Group, digests: Digests) -> str:
    named = [(sender, reports) for sender, reports in group.senders.most_common() if sender is not None]
    shown = [f"{digests.of(sender, group.last)} {reports:,}" for sender, reports in named[:SHOWN]]
    rest = len(named) - len(shown)
    parts = [*shown, *([f"{number_of(rest, 'other')}"] if rest else [])]
    parts += [f"{group.others:,} reports of further senders"] if group.others else []
    nameless = group.senders[None]
    parts += [f"{nameless:,} of messages that name none"] if nameless and named else []
    return ", ".join(parts) or "no message names one"


def group_json(group: Group, specs: Sequence[CollectionSpec], digests: Digests) -> dict[str, Any]:
    """Return the same as an object of JSON."""
    named = [(sender, reports) for sender, reports in group.senders.most_common() if sender is not None]
    sample = group.sample
    return {
        ("reason" if group.name in MEANING else "collection"): group.name,
        "reports": group.reports,
        "messages": group.messages,
        "first": iso(group.first),
        "last": iso(group.last),
        "detail": group.detail or None,
        "senders": [{"digest": digests.of(name, group.last), "reports": count} for name, count in named[:SHOWN]],
        "named_senders": len(named),
        "nameless_reports": group.senders[None],
        "sample": None if sample is None else list(Inspection(specs).lines(iter((sample,)), 1)),
        "source": group.source,
    }


def digests_of(out: Path, private: Path | None) -> Digests:
    """Return digests by a job's key, or one of this process; ResultsError if the key cannot be used."""
    path = (private or out) / SENDER_KEY
    return Digests(read_sender_key(path) if path.exists() else None)
