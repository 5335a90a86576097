"""Estimates of shares from the support counts of a channel."""

from uldp.mechanisms.decoders.pure import ShareEstimate, share_estimate
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.schemas.arrays import Counts, Reports


def estimate_of(channel: Channel, counts: Counts, n: Reports) -> ShareEstimate:
    return share_estimate(law_of(channel), counts, n)
