"""What a local job has read of its stream, as its journal says, and what is there now."""

from collections.abc import Iterator
from dataclasses import dataclass

from uldp.pipelines.audit.source import StreamSource
from uldp.pipelines.results.signed import Signed


@dataclass(frozen=True)
class Reading:
    """What a job has read of its stream, and what is there now."""

    unread: frozenset[str]  # the segments that are there, and that the job has not read
    waiting: frozenset[str]  # those of them behind all that it has read
    gone: frozenset[str]  # the segments that it has read, and that are not there
    replaced: frozenset[str]  # the segments that were others when it read them

    @classmethod
    def of(cls, signed: Signed, source: StreamSource) -> "Reading":
        """Compare the journal of a job with its stream."""
        there, last = set(source.names()), max(signed.segments, default="")
        unread = there - signed.segments.keys()
        both = sorted(there & signed.segments.keys())
        return cls(
            frozenset(unread),
            frozenset(name for name in unread if name > last),
            frozenset(signed.segments.keys() - there),
            frozenset(_replaced(both, signed, source)),
        )


def _replaced(names: list[str], signed: Signed, source: StreamSource) -> Iterator[str]:
    for name in names:
        entry = signed.segments[name]
        try:
            if source.identify(name) != (entry.marker, entry.nbytes):
                yield name
        except (OSError, ValueError):
            pass  # it cannot be read, and who reads it says so
