"""Which messages can never be counted, and which are late, so that their senders hear it at once."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Self

from uldp.collector.admission import Admission
from uldp.collector.collections import ServedCollection
from uldp.collector.reader import ReportReader
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.intake.edge import RateLimit
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.spec_watch import begin_watch
from uldp.schemas.places import numbers_in
from uldp.schemas.reasons import MEANING, REMEDY, Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec

#: Reports of a version that only the specs of tomorrow may know are kept, and can be replayed then.
_LATER = frozenset({Reason.UNKNOWN_VERSION})
#: Those of a collection too, if the specs are those of a folder.
_LATER_OF_FOLDER = _LATER | {Reason.UNKNOWN_COLLECTION}
#: So many bytes of these are kept in an hour: nobody may ever read them.
_MOST_LATER, _HOUR = 64 << 20, 3600
#: Reports that are refused now and may be counted after some time.
_CURED_BY_TIME = _LATER_OF_FOLDER | {Reason.TOO_EARLY}
#: The seconds after which a message is judged anew, and its sender is asked to come again, but after a day at the most.
_WAITS = 15, 60, 300, 1800, 7200, 28_800, 86_400, 604_800
_DAY = 86_400
#: A judge has no steps that a spec could need.
_ADMISSION = Admission(sender_key=True, caps_senders=True)


class Refusal(NamedTuple):
    """Why no report of a message can be counted."""

    reason: Reason  # the reason of its first report
    detail: str  # what ``uldp decode`` says about that report

    def to_json(self) -> dict[str, str]:
        """Return what the sender hears."""
        return {
            "reason": self.reason.value,
            "meaning": MEANING[self.reason],
            "detail": self.detail,
            "remedy": REMEDY[self.reason],
        }


class Again(NamedTuple):
    """When to send a message again that cannot be counted now."""

    seconds: int  # after so many seconds
    refusal: Refusal  # why not now


class Late(NamedTuple):
    """How many reports of a message are late by the clock of the stream: they are kept, and in no estimate."""

    late: int  # their number


class Judge:
    """Judges messages as a job of the same specs does."""

    def __init__(self, specs: Iterable[CollectionSpec], registry_ids: Mapping[int, str] | None = None) -> None:
        shared = SharedSpecs.of(specs)
        # No digest of a sender leaves the judge, so any key will do.
        self._reader = ReportReader(
            shared, judge_lateness=True, sender_key=secrets.token_bytes(32), registry_ids=registry_ids
        )
        self._specs, self._later = shared, _LATER
        self._kept = RateLimit(_MOST_LATER, _HOUR)
        self._latest: int | None = None
        self._look: Callable[[int | None], object] = lambda latest: None

    @classmethod
    def following(
        cls,
        folder: SpecFolder,
        say: Callable[[str], None],
        registry_ids: Mapping[int, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Return a judge by a folder's specs, which it looks at when it is time to; errors as ``SpecFolder.begin``.

        Its refusals are final, and the collection of a report may be one of tomorrow: so it refuses none because it
        does not know its collection.
        """
        specs, watch = begin_watch(folder, _ADMISSION, say, anew=True, clock=clock)
        judge = cls(specs, registry_ids)
        judge._later, judge._look = _LATER_OF_FOLDER, watch.look
        return judge

    def served(self) -> Mapping[CollectionKey, ServedCollection]:
        """Return the collections as they are now."""
        return self._specs.served

    def judge(self, messages: Sequence[Message]) -> "dict[int, Verdict]":
        """Return, by row, messages of which no report can be accounted now, and those of which reports are late.

        Others are not refused: the job rejects, and keeps, those of their reports that it cannot count.
        """
        self._look(self._latest)
        self._latest = max((message.publish_time for message in messages), default=self._latest)
        decoded = self._reader.decode([each._replace(source=f"post:{row}") for row, each in enumerate(messages)])
        if any(record.reason in _LATER_OF_FOLDER for record in decoded.rejected):
            self._specs.wanted = True
        late = [int(message.source.removeprefix("post:")) for message in decoded.late]
        one_each = decoded.late_reports == len(late)  # to judge a message alone takes longer than many together
        found: dict[int, Verdict] = {row: Late(1 if one_each else self._late(messages[row])) for row in late}
        rows = {row for record in decoded.rejected for row in numbers_in(record.place[1]).tolist()}
        refusals = ((row, self._refusal(messages[row])) for row in rows - found.keys())
        return found | {row: refusal for row, refusal in refusals if refusal is not None}

    def _late(self, message: Message) -> int:
        """Return how many reports of one message are late."""
        return self._reader.decode([message]).late_reports

    def _refusal(self, message: Message) -> Refusal | Again | None:
        """Judge one message alone, of which no report is late."""
        decoded = self._reader.decode([message])
        if decoded.columns:
            return None
        first, reasons = decoded.rejected[0], {Reason(record.reason) for record in decoded.rejected}
        refusal = Refusal(Reason(first.reason), first.detail)
        if seconds := self._cured_after(message) if reasons & _CURED_BY_TIME else 0:
            return Again(min(seconds, _DAY), refusal)
        if reasons & self._later:
            seconds = self._kept.take("", len(message.data))
            return Again(seconds, refusal) if seconds else None
        return refusal

    def _cured_after(self, message: Message) -> int:
        """Return after how many seconds a report of a message is taken; 0 if not in a week, nor once all specs open."""

        def cured(seconds: int) -> bool:
            decoded = self._reader.decode([message._replace(publish_time=message.publish_time + 1000 * seconds)])
            return bool(decoded.columns or decoded.late)

        opens = max(each.opens for each in self._specs.served.values())
        last = max(_WAITS[-1], -((message.publish_time - opens) // 1000))
        return next(filter(cured, _WAITS), last) if cured(last) else 0


#: What becomes of a message of which not every report is counted now.
Verdict = Refusal | Again | Late
