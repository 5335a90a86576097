"""Which messages can never be counted, so that their senders hear why at once."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from uldp.collector.reader import ReportReader
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.places import numbers_in
from uldp.schemas.reasons import MEANING, REMEDY, Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec

#: Reports of a version that only the specs of tomorrow may know are kept, and can be replayed then.
_LATER = frozenset({Reason.UNKNOWN_VERSION})


class Refusal(NamedTuple):
    """Why no report of a message can be counted.

    Attributes:
        reason: The reason of its first report.
        detail: What ``uldp decode`` says about that report.
    """

    reason: Reason
    detail: str

    def to_json(self) -> dict[str, str]:
        """Return what the sender hears."""
        return {
            "reason": self.reason.value,
            "meaning": MEANING[self.reason],
            "detail": self.detail,
            "remedy": REMEDY[self.reason],
        }


class Judge:
    """Judges messages as a job of the same specs does.

    Args:
        specs: The specs.
        registry_ids: What the ids of a schema registry mean; see ``RegistryIds``.
    """

    def __init__(self, specs: Iterable[CollectionSpec], registry_ids: Mapping[int, str] | None = None) -> None:
        # No digest of a sender leaves the judge, so any key will do.
        self._reader = ReportReader(
            SharedSpecs.of(specs), judge_lateness=False, sender_key=secrets.token_bytes(32), registry_ids=registry_ids
        )

    def refusals(self, messages: Sequence[Message]) -> dict[int, Refusal]:
        """Return, by row, the messages of which no report can be counted; a report that can be later counts here.

        A message with a report that can be counted is none of them: the job rejects its other reports, and keeps them.
        """
        numbered = [message._replace(source=f"post:{row}") for row, message in enumerate(messages)]
        places = (record.place for record in self._reader.decode(numbered).rejected)
        rows = {row for _, runs in places for row in numbers_in(runs).tolist()}
        return {row: refusal for row in rows if (refusal := self._refusal(messages[row]))}

    def _refusal(self, message: Message) -> Refusal | None:
        """Judge one message alone."""
        decoded = self._reader.decode([message])
        if decoded.columns or any(record.reason in _LATER for record in decoded.rejected):
            return None
        first = decoded.rejected[0]
        return Refusal(Reason(first.reason), first.detail)
