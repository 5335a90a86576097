"""How many forged reports a window takes before its counts are flagged, and intervals that hold although some are."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from uldp.mechanisms.inference.forecast import LARGEST, rounded
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.decoder import Decoder
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.table import NUMBERS, Table, TableName

#: The p-value of support counts of n reports, or None if n is too small for it.
CountsTest = Callable[[Counts, int], float | None]


def forgery_text(channel: Channel, r: Floats, n: int, elsewhere: float, test: CountsTest | None = None) -> str:
    """Say what a forged report of the rarest protected symbol weighs, and how many are flagged."""
    protected = np.flatnonzero(channel.q > 0)
    if not len(protected):
        return "a report is not obfuscated, so a forged one weighs as much as any other, and nothing flags it"
    target = int(protected[np.argmin(r[protected])])
    weight = 1 / float(channel.gain[target])
    weight_text = f"{weight:,.0f}" if weight >= 100 else f"{weight:.3g}"
    counts = f"one report without noise counts as {weight_text} of the {n:,} users"
    if channel.size > LARGEST:
        return counts
    share = least_flagged_share(channel, r, n, target, elsewhere, test)
    flagged = "no window with up to 50 %" if share is None else f"a window with about {100 * share:.2g} %"
    return f"{counts}; {flagged} of them is flagged"


def least_flagged_share(
    channel: Channel, r: Floats, n: int, target: int, elsewhere: float, test: CountsTest | None = None
) -> float | None:
    """Return the smallest share of forgers among n reports at which the test of counts raises its flag, by bisection.

    All forgers name one symbol, ``target``, without noise. The counts are as expected, so near this share, chance
    decides. It is None if no share up to one half is flagged, as where n is too small for the test, which is that of
    ``fit_counts`` unless given. ``r`` is the distribution of the true symbols of honest devices, and ``elsewhere`` the
    share of forged reports that support another symbol, for each other symbol with noise.
    """
    # Imported here because SciPy takes a quarter of a second to import, and devices and simulations need none.
    from uldp.mechanisms.inference.plausibility import ALARM_LEVEL, counts_p_value

    forged = np.where(channel.q > 0, elsewhere, 0.0)
    forged[target] = 1
    honest = channel.support_probability(r)

    def flagged(forgers: int) -> bool:
        expected = (n - forgers) * honest + forgers * forged
        counts = rounded(expected, round(expected.sum()))
        p_value = counts_p_value(channel, counts, n) if test is None else test(counts, n)
        return p_value is not None and p_value < ALARM_LEVEL

    low, high = 0, n // 2
    if not flagged(high):
        return None
    while high - low > max(high // 50, 1):
        middle = (low + high) // 2
        low, high = (low, middle) if flagged(middle) else (middle, high)
    return high / n


def with_forgers(table: Table, decoder: Decoder, forgers: float, cells: Counts, n: int) -> Table:
    """Return a table of a decoder with the intervals that allow for forgers beside its own; as it is if none are known.

    With a share phi of forged reports, the unbiased estimate of r has the expectation (1 - phi) r + phi c, where c is
    the mean of what these count as. None counts as more than W from any possible r (``Decoder.heaviest``), so forgers
    move the expectation by phi W at the most, and intervals whose ends are moved outwards by as much cover as before.
    Of a table about n_a of the n reports, phi n / n_a may be forged, because forgers choose what they report about.

    ``forgers`` is the share of all n reports that may be forged, and ``cells`` are the whole statistic.
    """
    ends = decoder.forged_ends(table, cells, forgers * n)
    if ends is None or table.low is None or table.high is None:
        return table
    low, high = ends
    if table.name not in NUMBERS:
        low, high = low.clip(0.0, 1.0), high.clip(0.0, 1.0)
    # The table's own ends hold what is published, which may be outside of the range.
    return replace(table, low_forged=np.minimum(low, table.low), high_forged=np.maximum(high, table.high))


def all_with_forgers(
    tables: Iterable[Table], decoder: Decoder, forgers: float, cells: Counts, n: int
) -> tuple[Table, ...]:
    """Return ``with_forgers`` of all tables of a decoder; what forgers alone may bring about is not found."""
    moved = tuple(with_forgers(table, decoder, forgers, cells, n) for table in tables)
    lows = {table.of: table.low_forged for table in moved if table.name is TableName.SHARE}
    return tuple(
        replace(table, values=np.where(low > 0, table.values, 0.0))
        if table.name is TableName.FOUND and (low := lows.get(table.of)) is not None
        else table
        for table in moved
    )
