"""What became of posts, counted for those who watch the server."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import accumulate

from uldp.pipelines.live.exposition import Samples, exposed
from uldp.schemas.reasons import Reason

#: Each metric, whether it is a counter, its labels, and what it means. Names are stable.
METRICS: dict[str, tuple[bool, tuple[str, ...], str]] = {
    "uldp_intake_posts": (True, ("status", "reason"), "Posts by answer, and by the reason of what is refused."),
    "uldp_intake_bytes": (True, ("status",), "Bytes of messages that came whole, inflated, by answer."),
    "uldp_intake_late_reports": (True, (), "Reports that were late when they came, and that were written."),
    "uldp_intake_sender_posts": (True, ("sender",), "Posts with 202 by the sender of their token."),
    "uldp_intake_seconds": (True, ("le",), "Posts with 202 by the seconds until they were written: at most le."),
    "uldp_intake_seconds_sum": (True, (), "The sum of these seconds."),
    "uldp_intake_waiting_bytes": (False, (), "Bytes of messages that wait to be written."),
    "uldp_intake_free_bytes": (False, (), "Free bytes of the disk of the local stream."),
}
_SECONDS = 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0
#: Senders with a label of their own; a file of tokens may have any number.
_MOST_SENDERS = 200
#: What a post that is not refused for a reason of reports has in place of it.
NO_REASON = ""


class PostMetrics:
    """Counts posts, in one event loop, and asks for the bytes that wait, and that are free on a disk, if any."""

    def __init__(self, waiting: Callable[[], int] = lambda: 0, free: Callable[[], int] | None = None) -> None:
        self._waiting, self._free = waiting, free
        self._posts: Counter[tuple[int, str]] = Counter()
        self._bytes: Counter[int] = Counter()
        self._senders: Counter[str] = Counter()
        self._slots = [0] * (len(_SECONDS) + 1)
        self._seconds = 0.0
        self._late = 0

    def refused(self, status: int, reason: Reason | str = NO_REASON, size: int = 0) -> None:
        """Count a post that was not written."""
        self._posts[status, str(reason)] += 1
        self._bytes[status] += size

    def written(self, sender: str | None, size: int, seconds: float, late: int = 0) -> None:
        """Count a post that was written after so many seconds."""
        self._posts[202, NO_REASON] += 1
        self._bytes[202] += size
        self._slots[bisect_left(_SECONDS, seconds)] += 1
        self._seconds += seconds
        self._late += late
        if sender is not None:
            known = sender in self._senders or len(self._senders) < _MOST_SENDERS
            self._senders[sender if known else "others"] += 1

    def text(self) -> bytes:
        """Return the metrics as they are now, for Prometheus."""
        return exposed(METRICS, self._samples())

    def _samples(self) -> Samples:
        for (status, reason), posts in sorted(self._posts.items()):
            yield "uldp_intake_posts", (str(status), reason), posts
        for status, size in sorted(self._bytes.items()):
            yield "uldp_intake_bytes", (str(status),), size
        yield "uldp_intake_late_reports", (), self._late
        for sender, posts in sorted(self._senders.items()):
            yield "uldp_intake_sender_posts", (sender,), posts
        for bound, posts in zip((*map(str, _SECONDS), "+Inf"), accumulate(self._slots), strict=True):
            yield "uldp_intake_seconds", (bound,), posts
        yield "uldp_intake_seconds_sum", (), self._seconds
        yield "uldp_intake_waiting_bytes", (), self._waiting()
        if self._free is not None:
            yield "uldp_intake_free_bytes", (), self._free()
