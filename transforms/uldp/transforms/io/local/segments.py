"""The segments of a local stream: the number in a name, and what a header tells."""

import os
import re
from math import inf
from pathlib import Path
from typing import NamedTuple, Self

from uldp.schemas.codec.blocks import Container, open_file
from uldp.transforms.io.message_files import LAST_PUBLISH_TIME, MESSAGES_BEFORE

#: The number of digits in a name.
DIGITS = 12


def number_of(segment: str) -> int:
    """Return the number in the name of a segment."""
    return int(segment[:DIGITS])


def name_of(number: int) -> str:
    """Return the name of a segment."""
    return f"{number:0{DIGITS}d}.avro"


class Before(NamedTuple):
    """How many messages a stream had before a segment.

    Two of them have a difference if both count from one segment on. A writer that does not find the segment before, or
    finds no number in it, counts from its own segment on.
    """

    messages: int  # the number of messages
    since: int  # the first segment that is counted

    def __str__(self) -> str:
        return f"{self.messages} since {self.since}"

    @classmethod
    def parse(cls, text: bytes) -> Self | None:
        """Read what ``str`` has returned; None of anything else."""
        found = re.fullmatch(rb"([0-9]{1,18}) since ([0-9]{1,12})", text)
        return None if found is None else cls(int(found[1]), int(found[2]))


class SegmentHeader(NamedTuple):
    """The facts that the header of a segment tells."""

    last_publish_time: int  # the latest publish time of its messages, in milliseconds
    marker: str  # its sync marker, in hexadecimal digits: random bytes that tell it from every other segment
    size: int  # the size of the file in bytes
    compressed: bool = False  # whether its blocks are compressed, so that nobody knows how large it is when inflated
    before: Before | None = None  # how many messages the stream had before it; None in a segment of an older version

    @property
    def nbytes(self) -> float:
        """The bytes of its messages, at the most; infinity if it is compressed."""
        return inf if self.compressed else self.size


def read_header(segment: Path) -> SegmentHeader:
    """Read the header of a segment; OSError, ValueError or KeyError if the file is not one."""
    with open_file(segment) as file:
        container = Container.open(file)
        return SegmentHeader(
            int(container.metadata[LAST_PUBLISH_TIME]),
            container.sync_marker.hex(),
            os.fstat(file.fileno()).st_size,
            container.codec != "null",
            Before.parse(container.metadata.get(MESSAGES_BEFORE, b"")),
        )


def before_next(segment: Path) -> Before | None:
    """Return how many messages a stream had behind a segment, if its header says it; errors as ``read_header``."""
    with open_file(segment) as file:
        container = Container.open(file)
        before = Before.parse(container.metadata.get(MESSAGES_BEFORE, b""))
        return None if before is None else Before(before.messages + container.count(), before.since)
