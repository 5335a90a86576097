"""What a user has spent over time, and when a budget admits the next report.

The times are those of the observations that the reports are about, by the device's clock.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from uldp.mechanisms.protocol.mechanism import Guarantee
from uldp.schemas.errors import UldpError
from uldp.schemas.records import iso
from uldp.schemas.specs.budget import Budget
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import milliseconds

_HOUR, _DAY, _YEAR = 3_600_000, 86_400_000, 365 * 86_400_000
# Sums of floats may be off by this part of the budget, so that ten reports of 0.1 fit a budget of 1.
_ROUNDING = 1e-9


class Spending(NamedTuple):
    """What some reports have spent together, in nats, at the time of the last; in milliseconds since 1970-01-01 UTC."""

    time: int
    epsilon: float
    #: When the clock was found to be before that time, so that one of the two was wrong; None if it is not now.
    seen: int | None = None


class BudgetExceededError(UldpError):
    """The device refuses a report, because it would exceed the budget of its spec.

    Attributes:
        until: The first time at which the same report would not exceed it, in milliseconds since 1970-01-01 UTC, if
            the device sends no others before.
    """

    def __init__(self, spec: CollectionSpec, until: int) -> None:
        self.until = until
        super().__init__(
            f"{spec.collection}: this report would exceed the budget of the user, {spec.budget}; the device can report"
            f" again from {iso(until)} on"
        )


def spent_by(guarantee: Guarantee, before: int) -> float | None:
    """Return what a report of a kept response spends that ``before`` other reports have had; None without privacy.

    One report reveals epsilon. Two may reveal the lasting budget, which is all that the response can: two equal reports
    show that they are the response, and not the noise on it. So the second spends what is left, and others nothing.
    """
    if not before or guarantee.epsilon is None or guarantee.lasting is None:
        return guarantee.epsilon
    return guarantee.lasting - guarantee.epsilon if before == 1 else 0.0


def noticed(spent: Iterable[Spending], now: int, jumped: int, skew: int) -> list[Spending]:
    """Return what was spent, with the time since which each is ahead of the clock by more than ``skew``.

    The clock has ``jumped`` by so many milliseconds since it was last looked at. The times of earlier looks move with
    it, so that the time since then is the one that has passed. None is later than now.
    """
    return [
        each._replace(
            seen=None if each.time - now <= skew else now if each.seen is None else max(0, min(each.seen + jumped, now))
        )
        for each in spent
    ]


def admitted_at(spent: Iterable[Spending], epsilon: float, time: int, budget: Budget) -> int:
    """Return the first time, from ``time`` on, at which a report that spends ``epsilon`` keeps a budget.

    What was spent at a time counts until the period of the budget has passed since then. What was spent at later times,
    as the clock said then, counts too: from when it was seen to be ahead of the clock, so that a clock that was years
    ahead silences a device for one period; and once more from its own time on, so that a clock that is set back frees
    nothing. If nothing was seen, no period of this length has spendings, of those that were admitted for the budget,
    that exceed it. A report that spends nothing is always admitted.
    """
    if not epsilon:
        return time
    spent, first = list(spent), time
    while (later := _admitted_as_counted(spent, epsilon, first, budget)) > first:
        first = later  # until then, more may have come to count by its own time
    return first


def _admitted_as_counted(spent: Sequence[Spending], epsilon: float, time: int, budget: Budget) -> int:
    """Return the first time from ``time`` on, if everything counted from the same time as it does at ``time``."""
    every, left = milliseconds(budget.every), budget.epsilon * (1 + _ROUNDING) - epsilon
    counted = ((each.time if each.seen is None or each.time <= time else each.seen, each.epsilon) for each in spent)
    for since, spends in sorted(counted, reverse=True):
        left -= spends
        if not left >= 0:
            return max(time, since + every)
    return time


def record(spent: Sequence[Spending], epsilon: float, time: int) -> list[Spending]:
    """Return what was spent before and now, in the order of time.

    Spendings of one hour become one, at the time of the last of them, so that a device that reports each second has at
    most 8,760 in a year; those that are a year older than the newest that is not ahead become one for each day. None is
    ever forgotten: a clock that was a year ahead may be set back. Reports that spend nothing, as from a kept response,
    leave none.
    """
    all_of_them = [*spent, Spending(time, epsilon)]
    newest = max(each.time for each in all_of_them if each.seen is None)
    merged: dict[tuple[int, int], Spending] = {}
    for each in all_of_them:
        span = _HOUR if newest - each.time < _YEAR else _DAY
        slot = span, each.time // span
        before = merged.get(slot, each._replace(epsilon=0.0))
        seen = None if before.seen is None or each.seen is None else max(before.seen, each.seen)
        merged[slot] = Spending(max(before.time, each.time), before.epsilon + each.epsilon, seen)
    return sorted((each for each in merged.values() if each.epsilon), key=lambda each: each.time)
