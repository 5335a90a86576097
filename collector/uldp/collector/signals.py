"""Signals about devices and senders: clock skew, improbable payloads, and the number of reports per sender.

The stages may add them in any order, like partial counts. The signals do not change which reports are counted.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from uldp.schemas.arrays import Counts, Digests, Mask, SignalBits, Times
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import SKEW_RANGES, Sender, Signals
from uldp.schemas.specs.collection import CollectionSpec

#: The fewest bytes of the key of ``sender_digest``.
SENDER_KEY_BYTES = 32
#: This bit marks a report with an improbable payload. The bits below it hold the range of its clock skew.
IMPROBABLE = 0x80
#: A day in milliseconds.
_DAY = 86_400_000


_OF_EXPONENTS = np.clip(np.arange(1 << 11) - 1022, 0, SKEW_RANGES - 1)
#: Ranges of clock skew, indexed by the first 12 bits of a float, which are its sign and its exponent.
_RANGES: SignalBits = np.concatenate([_OF_EXPONENTS, _OF_EXPONENTS + SKEW_RANGES]).astype(np.uint8)


def signal_bits(event_times: Times, published: Times, improbable: Mask) -> SignalBits:
    """Return one byte per report: the range of its clock skew, and the bit ``IMPROBABLE``.

    The range is the exponent of the skew in seconds, read from the bits of a float, so hostile times cannot overflow
    it. Ranges of ``past`` start at 0, and ranges of ``early`` start at ``SKEW_RANGES``.
    """
    seconds = published.astype(np.float64)
    seconds -= event_times
    seconds /= 1000
    signals = _RANGES.take((seconds.view(np.uint64) >> np.uint64(52)).view(np.int64))
    signals[improbable] |= IMPROBABLE
    return signals


def skew_counts(signals: SignalBits, groups: Times, k: int) -> Counts:
    """Count the reports of each of k groups by their range of clock skew, shape (k, 2 SKEW_RANGES)."""
    width = 2 * SKEW_RANGES
    counts = np.bincount(groups * width + (signals & ~np.uint8(IMPROBABLE)), minlength=k * width)
    return counts.astype(np.int64, copy=False).reshape(k, width)


def improbable_counts(signals: SignalBits, groups: Times, k: int) -> Counts:
    """Count the reports with an improbable payload in each of k groups, shape (k,)."""
    return np.bincount(groups[signals >= IMPROBABLE], minlength=k).astype(np.int64, copy=False)


def sender_digest(sender: str, key: bytes) -> int:
    """Return 8 bytes of HMAC-SHA-256 of a sender as a number: without ``key``, nobody can try senders."""
    return int.from_bytes(hmac.digest(key, sender.encode("utf-8", "surrogatepass"), "sha256")[:8], "big")


def digest_of_day(digest: int, time: int) -> str:
    """Return a sender's digest as results show it, in hexadecimal digits: another one each day of UTC.

    So readers of results cannot follow a sender from day to day, while the windows of a day name it alike.
    """
    day = time // _DAY
    return hmac.digest(digest.to_bytes(8, "big"), day.to_bytes(8, "big", signed=True), "sha256")[:8].hex()


def limits_senders(specs: Iterable[CollectionSpec]) -> bool:
    """Return whether a spec limits reports per sender, so that its job needs a key of ``sender_digest``."""
    return any(spec.limits.max_reports_per_sender is not None for spec in specs)


def checked_sender_key(specs: Iterable[CollectionSpec], key: bytes | None) -> bytes | None:
    """Return the key for senders, None if none is needed; ValueError, without it, if missing or short."""
    if not limits_senders(specs):
        return None
    if not isinstance(key, bytes) or len(key) < SENDER_KEY_BYTES:
        found = "none is given" if key is None else f"it is a {type(key).__name__} of {len(key)}"
        raise RequestError(
            f"limits.max_reports_per_sender needs a sender_key of {SENDER_KEY_BYTES} bytes or more, and {found};"
            f" draw it once with secrets.token_bytes({SENDER_KEY_BYTES}), and keep it"
        )
    return key


@dataclass(frozen=True, slots=True, eq=False)
class SenderCounts:
    """Number of reports per sender key, as a Misra-Gries summary, which has a bounded size for any senders.

    Summaries are merged as in Agarwal et al., "Mergeable Summaries" (PODS 2012, section 3). No count is too high, and
    after N reports no count is too low by more than N / (CAPACITY + 1). All counts are exact for up to CAPACITY
    senders.
    """

    CAPACITY = 1024

    digests: Digests  # shape (k,): digests of sender keys, sorted
    reports: Counts  # shape (k,): a lower bound of the number of reports of each sender

    @classmethod
    def of(cls, digests: Digests) -> "SenderCounts":
        """Count the reports of each sender, given one digest per report."""
        senders, reports = np.unique(digests, return_counts=True)
        return cls(senders, reports.astype(np.int64))._cut()

    def __add__(self, other: "SenderCounts") -> "SenderCounts":
        digests, at = np.unique(np.concatenate([self.digests, other.digests]), return_inverse=True)
        reports = np.zeros(len(digests), dtype=np.int64)
        np.add.at(reports, at, np.concatenate([self.reports, other.reports]))
        return SenderCounts(digests, reports)._cut()

    def _cut(self) -> "SenderCounts":
        if len(self.digests) <= self.CAPACITY:
            return self
        left = self.reports - np.partition(self.reports, -self.CAPACITY - 1)[-self.CAPACITY - 1]
        return SenderCounts(self.digests[left > 0], left[left > 0])

    def busiest(self) -> tuple[int, int] | None:
        """Return the digest and reports of the largest sender, of equals the lowest; None if none is held."""
        if not len(self.digests):
            return None
        at = int(self.reports.argmax())
        return int(self.digests[at]), int(self.reports[at])


def published_signals(skew: Counts, improbable: int, senders: SenderCounts | None, start: int) -> Signals:
    """Return signals as published, of the reports by range of ``signal_bits``, and by sender if limited."""
    busiest = None if senders is None else senders.busiest()
    return Signals(
        early=_shortened(skew[SKEW_RANGES:]),
        past=_shortened(skew[:SKEW_RANGES]),
        improbable_reports=improbable,
        busiest_sender=None if busiest is None else Sender(digest_of_day(busiest[0], start), busiest[1]),
    )


def _shortened(counts: Counts) -> tuple[int, ...]:
    """Return the counts without the zeros at their end."""
    (filled,) = counts.nonzero()
    return tuple(counts[: filled[-1] + 1].tolist()) if len(filled) else ()
