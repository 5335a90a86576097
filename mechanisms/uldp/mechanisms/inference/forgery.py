"""The share of forged reports that a window needs before its counts are flagged."""

from collections.abc import Callable

import numpy as np

from uldp.mechanisms.inference.forecast import LARGEST, rounded
from uldp.mechanisms.laws.channel import Channel
from uldp.schemas.arrays import Counts, Floats

#: The p-value of support counts of n reports, or None if n is too small for it.
CountsTest = Callable[[Counts, int], float | None]


def forgery_text(channel: Channel, r: Floats, n: int, elsewhere: float, test: CountsTest | None = None) -> str:
    """Say what one forged report weighs that names a protected symbol, and how many of them are flagged.

    Forgers name the protected symbol with the smallest share. The arguments are those of ``least_flagged_share``.
    """
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
    decides. It is None if no share up to one half is flagged, as where n is too small for the test.

    Args:
        r: Shape (|Z|,): the distribution of the true symbols of honest devices.
        target: The symbol that forgers name.
        elsewhere: The share of forged reports that support another symbol, for each other symbol with noise.
        test: The test of counts; that of ``fit_counts`` if it is None.
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
