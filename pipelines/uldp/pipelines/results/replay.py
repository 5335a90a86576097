"""Send rejected reports again after the cause is fixed: a spec or a version that was missing, or a limit.

A report keeps its bytes, and with them its id and its event time, so deduplication sees it as the report that it is:
to replay it twice, or after it was counted after all, changes no count.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from uldp.schemas.reasons import Reason
from uldp.schemas.records import ATTEMPT, Message
from uldp.schemas.rejected import Rejected
from uldp.transforms.io.endpoints import Writer
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import StreamError

#: Messages of a segment; bounds the memory.
SEGMENT_MESSAGES = 10_000


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of rejected reports."""

    sent: int  # they are in the stream again
    exhausted: int  # they had been tried as often as is allowed, and were left alone
    cut: int  # only the beginning of them was stored, because they were too large; or nothing, because they were many
    #: They are equal to others that were sent: a file that claims to stand for many messages is as large as one.
    copies: int = 0

    def __str__(self) -> str:
        copies = f", {self.copies:,} not sent because they are copies of others" if self.copies else ""
        return (
            f"{self.sent:,} sent again, {self.exhausted:,} not sent after too many attempts, "
            f"{self.cut:,} not sent because only their beginning or their number was stored{copies}"
        )


def replay(rejected: Iterable[Rejected], stream: Writer, *, max_attempts: int) -> Replayed:
    """Append rejected reports, unless tried ``max_attempts`` times, to an open stream, with their attempt raised.

    The stream's clock says when they are published, so they may be late now; a backfill counts them all the same.
    StreamError if the stream is closed: nobody would read on.
    """
    if isinstance(stream, LocalStream) and stream.closed:  # a broker's stream has no end
        raise StreamError(f"{stream.path}: the stream is closed; replay into a new directory, and backfill both")
    sent = exhausted = cut = copies = 0

    def messages() -> Iterable[Message]:
        nonlocal sent, exhausted, cut, copies
        now = stream.now()
        for record in rejected:
            if record.reason == Reason.TOO_LARGE or not record.stored:
                cut += record.reports
            elif record.attempt >= max_attempts:
                exhausted += record.reports
            else:
                different = dict(zip(record.bodies, record.publish_times, strict=True))
                of_different = record.reports // record.messages * len(different)
                sent += of_different
                copies += record.reports - of_different
                attributes = {**record.attributes, ATTEMPT: str(record.attempt + 1)}
                for body, published in different.items():
                    yield Message(body, max(now, published), attributes)

    pending = iter(messages())
    while segment := sorted(islice(pending, SEGMENT_MESSAGES), key=lambda message: message.publish_time):
        stream.append(segment)
    return Replayed(sent, exhausted, cut, copies)
