"""What a local job has read of its stream, or taken as given up, as its journal says, and what is there now."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import number_of
from uldp.transforms.io.local.given_up import GivenUp
from uldp.transforms.io.local.journal import GivenUpTaken
from uldp.transforms.io.local.stream import LocalStream

if TYPE_CHECKING:
    from uldp.pipelines.audit.source import StreamSource


@dataclass(frozen=True)
class Reading:
    """What a job has read of its stream, and what is there now."""

    unread: frozenset[str]  # the segments that are there, and that the job has not read
    waiting: frozenset[str]  # those of them behind all that it has read
    gone: frozenset[str]  # the segments that it has read, and that are not there
    replaced: frozenset[str]  # the segments that were others when it read them

    @classmethod
    def of(cls, signed: Signed, source: "StreamSource") -> "Reading":
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


def _replaced(names: list[str], signed: Signed, source: "StreamSource") -> Iterator[str]:
    for name in names:
        entry = signed.segments[name]
        try:
            if source.identify(name) != (entry.marker, entry.nbytes):
                yield name
        except (OSError, ValueError):
            pass  # it cannot be read, and who reads it says so


def given_up_text(given_up: GivenUp | GivenUpTaken, are: str) -> str:
    """Return a line about segments; ``are`` is a form of that verb.

    >>> given_up_text(GivenUpTaken(3, 5, 3, "at least"), "were")
    'segments 3 to 5 were given up: at least 3 messages are missing'
    """
    bound = given_up.bound and f"{given_up.bound} "
    missing = f"{number_of(given_up.messages, 'message')} {'is' if given_up.messages == 1 else 'are'} missing"
    return f"segments {given_up.first} to {given_up.last} {are} given up: {bound}{missing}"


def untaken(stream: LocalStream, taken: Iterable[GivenUpTaken], read: Iterable[int]) -> list[GivenUp]:
    """Return the runs of segments of which a job, by its journal, has read none and has taken none as given up."""
    known = {*read, *(each.last for each in taken)}
    return [each for each in stream.given_up if each.last >= stream.first and known.isdisjoint(each.segments)]
