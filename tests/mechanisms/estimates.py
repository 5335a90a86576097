"""Estimates of shares from the support counts of a channel, and what tables say."""

from dataclasses import replace

from uldp.mechanisms.decoders.pure import ShareEstimate, share_estimate
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.schemas.arrays import Counts, Floats, Reports
from uldp.schemas.table import ARRAYS, Table


def estimate_of(channel: Channel, counts: Counts, n: Reports) -> ShareEstimate:
    return share_estimate(law_of(channel), counts, n)


def ends_of(table: Table) -> tuple[Floats, Floats]:
    """The ends of the intervals of a table that has some."""
    assert table.low is not None
    assert table.high is not None
    return table.low, table.high


def say_the_same(one: Table, other: Table) -> bool:
    """Whether two tables are equal to the last bit."""
    bare = dict.fromkeys(ARRAYS)
    arrays = [{name: array.tobytes() for name, array in each.arrays.items()} for each in (one, other)]
    return arrays[0] == arrays[1] and replace(one, **bare) == replace(other, **bare)  # type: ignore[arg-type]
