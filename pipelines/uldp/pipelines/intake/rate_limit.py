"""A rate limit: how many bytes a sender may send in a time, so that one fills no disk and keeps no other out."""

import math
import time
from collections import Counter
from collections.abc import Callable

#: Whoever comes when so many have sent something within a time shares one limit with all others who do.
_MOST_KEYS = 1 << 16


class RateLimit:
    """Counts the bytes of each sender, ``most`` of them allowed, anew every ``seconds``."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._seconds, self._clock = most, seconds, clock
        self._ends = 0.0
        self._taken: Counter[str] = Counter()

    def take(self, sender: str, number: int) -> int:
        """Take bytes; return 0, or if there are not so many left, after how many seconds there are again."""
        now = self._clock()
        if now >= self._ends:
            self._ends = now + self._seconds
            self._taken.clear()
        if sender not in self._taken and len(self._taken) >= _MOST_KEYS:
            sender = ""
        if self._taken[sender] + number > self._most:
            return math.ceil(self._ends - now)
        self._taken[sender] += number
        return 0
