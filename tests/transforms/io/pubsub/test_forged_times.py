"""A publisher who writes the publish times itself, because the subscription has a timestamp_attribute."""

from collections.abc import Iterator, Sequence

import pytest

from tests.fakes.pubsub import NOW, SUBSCRIPTION
from uldp.schemas.records import Message
from uldp.transforms.io.pubsub.checkpoint import Leases
from uldp.transforms.io.pubsub.source import PubSubReader, PubSubSource

SECOND = 1000


class Steady:
    """A subscription that gives two messages a second: one published now, one with a time that its sender wrote."""

    def __init__(self, written: int) -> None:
        self.written, self.now = written, NOW

    def clock(self) -> float:
        return self.now / 1000

    def pull(self) -> tuple[list[str], list[Message]]:
        self.now += SECOND
        return [f"honest {self.now}", f"forged {self.now}"], [Message(b"", self.now), Message(b"", self.written)]

    def acknowledge(self, ack_ids: Sequence[str]) -> None: ...

    def extend(self, ack_ids: Sequence[str], seconds: int) -> None: ...


class StillLeases(Leases):
    def keep_tending(self) -> None: ...


def watermarks(written: int, seconds: int) -> Iterator[int]:
    """The watermark after each pull, where all earlier messages are acknowledged before the next."""
    queue = Steady(written)
    source = PubSubSource(SUBSCRIPTION, delay_ms=0, timestamp_attribute="sent_at")
    reader = PubSubReader(source, StillLeases(queue, clock=queue.clock), clock=queue.clock)
    for _ in range(seconds):
        reader.advance()
        yield reader.get_watermark().micros // 1000
        for _ in range(2):  # the leases take a commit for true with the next mark
            reader.get_checkpoint_mark().finalize_checkpoint()


@pytest.mark.parametrize(("written", "reached"), [(NOW - 60 * SECOND, NOW - 60 * SECOND), (2 * NOW, NOW + 10 * SECOND)])
def test_a_steady_flow_of_old_times_holds_the_watermark_and_times_to_come_do_not_move_it(
    written: int, reached: int
) -> None:
    assert list(watermarks(written, 10))[-1] == reached
