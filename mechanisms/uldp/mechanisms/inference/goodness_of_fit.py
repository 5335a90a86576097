"""Goodness of fit: do the reports of devices that all hold one thing follow the law of their mechanism?

``plausibility`` tests reports of unknown values, on which no mixture of values may throw suspicion. Here the value is
known, as in a test of a client. So every probability is known, and a small deviation of any of them is found.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import default_rng

from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Counts, Floats, Payloads

#: Of payloads that are expected less often, several are counted together.
LEAST_EXPECTED = 5.0
#: ``checks`` tests pairs of up to this many symbols, the first ones.
MOST_PAIRED = 32
# Supports of a block of reports are held at once, so many numbers of them.
_AT_ONCE = 1 << 22
# Cells whose law is unknown are compared in so many groups of reports.
_GROUPS = 200


@dataclass(frozen=True)
class Check:
    """A test of reports, under the hypothesis that they follow the mechanism."""

    name: str  # the numbers that it looks at
    statistic: str  # its statistic in words
    p_value: float  # the probability of such a deviation or a larger one, or an upper bound of it
    finding: str  # the largest deviation, in words


def checks(mechanism: Mechanism, r: Floats, payloads: Payloads, seed: int = 0) -> Iterator[Check]:
    """Test whether n reports are independent, and follow the law of a mechanism.

    - Symbols, if the mechanism knows their law: Pearson's chi-square of the payloads, and the count of each, which is
      binomial.
    - Support counts: the count of each symbol is binomial with p or q, and that of each pair of the first symbols is
      binomial too. Of several held symbols of which some are drawn, the pairs are left out: how often a device holds
      both is not in ``r``.
    - Strata: Pearson's chi-square of the drawn parts by their shares, and then the tests of each part.
    - Any other mechanism: its cells, beside those of as many reports that this function draws with ``seed``. It finds
      less, because both samples vary.

    The p-values of binomial counts are exact and two-sided. Bonferroni's correction makes one of all symbols, and one
    of all pairs. A mechanism with a permanent response is tested by the law of one report, so each report must have a
    response of its own. ``r``, shape (|Z|,), is the distribution of the symbols of the devices.
    """
    mechanism = mechanism.bare
    if mechanism.parts:
        yield from _of_strata(mechanism, r, payloads, seed)
    elif (law := mechanism.law(r)) is not None:
        counts = np.bincount(payloads, minlength=len(law))
        yield chi_square("payloads", "symbol", counts, law)
        yield binomial("single payloads", lambda symbol: f"symbol {symbol} came", counts, len(payloads), law)
    elif mechanism.channel is not None and (r.max() == 1 or mechanism.held > 1):
        yield from _of_supports(mechanism, mechanism.channel, r, payloads)
    else:
        drawn = mechanism.perturb(default_rng(seed).choice(len(r), len(payloads), p=r), default_rng(seed))
        yield _beside_drawn(mechanism, payloads, drawn)


def chi_square(name: str, noun: str, counts: Counts, law: Floats) -> Check:
    """Test whether outcomes have these probabilities, by Pearson's chi-square.

    Outcomes beside each other are counted together until ``LEAST_EXPECTED`` of them are expected. The p-value is 0 if
    an outcome of probability 0 came.
    """
    from scipy import special  # takes a quarter of a second, and devices need none

    n = int(counts.sum())
    impossible = np.flatnonzero((law == 0) & (counts > 0))
    if len(impossible):
        first = int(impossible[0])
        text = f"{noun} {first} came {counts[first]:,} times, and cannot come"
        return Check(name, f"{len(impossible)} that cannot come", 0.0, text)
    starts = _starts(n * law)
    expected, found = np.add.reduceat(n * law, starts), np.add.reduceat(counts, starts)
    residuals = (found - expected) / np.sqrt(expected)
    statistic, degrees = float((residuals**2).sum()), len(expected) - 1
    p_value = float(special.chdtrc(degrees, statistic)) if degrees else 1.0
    single = (counts - n * law) / np.sqrt(np.maximum(n * law, LEAST_EXPECTED))
    worst = int(np.abs(single).argmax())
    text = f"{noun} {worst} came {counts[worst]:,} times, {n * law[worst]:,.1f} are expected"
    return Check(name, f"chi-square {statistic:.1f}, degrees of freedom {degrees}", p_value, text)


def _starts(expected: Floats) -> Counts:
    """Return the first outcome of each bin, such that ``LEAST_EXPECTED`` or more are expected in each, if possible."""
    sums, starts = np.cumsum(expected), [0]
    while (end := int(np.searchsorted(sums, (sums[starts[-1] - 1] if starts[-1] else 0) + LEAST_EXPECTED))) < len(sums):
        if sums[-1] - sums[end] < LEAST_EXPECTED:  # what is left is too little for a bin
            break
        starts.append(end + 1)
    return np.array(starts)


def _of_strata(strata: Mechanism, r: Floats, payloads: Payloads, seed: int) -> Iterator[Check]:
    split, of_parts = list(strata.split_payloads(payloads)), np.split(r, strata.first_symbols[1:])
    # Of a part that takes several symbols, they sum to their number.
    shares = np.array([own.sum() / part.held for own, part in zip(of_parts, strata.parts, strict=True)])
    yield chi_square(f"{strata.noun}s", strata.noun, np.array([len(rows) for _, rows, _ in split]), shares)
    for (number, rows, own), inputs in zip(split, of_parts, strict=True):
        if len(rows) and inputs.any():
            for check in checks(strata.parts[number], inputs / shares[number], own, seed):
                yield replace(check, name=f"{check.name} of {strata.noun} {number}")


def _of_supports(mechanism: Mechanism, channel: Channel, r: Floats, payloads: Payloads) -> Iterator[Check]:
    n = len(payloads)
    r = r[: channel.size]  # one more input of a design is that of the symbols outside of it
    m = channel.support_probability(r)
    counts = mechanism.statistic(payloads)
    yield binomial("supports", lambda symbol: f"symbol {symbol} is supported", counts, n, m)
    symbols = np.arange(min(len(m), MOST_PAIRED))
    certain = mechanism.held == 1 or bool(((r == 0) | (r == 1)).all())
    if not channel.one_symbol and len(symbols) > 1 and certain:
        expected = channel.moments(r)(np.eye(len(m))[:, symbols])[symbols]
        upper = np.triu_indices(len(symbols), 1)
        matrices = (supports[:, symbols] for supports in support_matrices(mechanism, payloads))
        counts = sum((each.T @ each for each in matrices), np.zeros((len(symbols),) * 2, np.int64))[upper]
        names = np.column_stack(upper)
        said = "symbols {} and {} are both supported"
        yield binomial("pairs", lambda pair: said.format(*names[pair]), counts, n, expected[upper])


def support_matrices(mechanism: Mechanism, payloads: Payloads) -> Iterator[Counts]:
    """Yield the cells of each report, for blocks of reports: shape (reports, statistic_size)."""
    rows = max(_AT_ONCE // mechanism.statistic_size, 1)
    for start in range(0, len(payloads), rows):
        block = payloads[start : start + rows]
        yield np.array([as_dense(cells) for cells in mechanism.tally([block], np.arange(len(block)), len(block))])


def binomial(
    name: str, said: Callable[[int], str], counts: Counts, n: int | Counts, m: Floats, noun: str = "reports"
) -> Check:
    """Test counts, (tests,), that are binomial with n and m, by the least p-value; ``said`` says what they count."""
    from scipy import special  # takes a quarter of a second, and devices need none

    n = np.broadcast_to(n, counts.shape)
    # SciPy's tails take probabilities inside of (0, 1); outside, a count is certain.
    inside = np.clip(m, 1e-300, 1 - 2**-53)
    at_most = special.betainc(np.maximum(n - counts, 1), counts + 1, 1 - inside)
    at_least = special.betainc(np.maximum(counts, 1), n - counts + 1, inside)
    tails = np.minimum(np.where(counts == n, 1.0, at_most), np.where(counts == 0, 1.0, at_least))
    certain = (m <= 0) | (m >= 1)
    p_values = np.where(certain, counts == np.where(m <= 0, 0, n), np.minimum(2 * tails, 1.0))
    worst = int(p_values.argmin())
    expected = n[worst] * m[worst]
    errors = math.sqrt(expected * (1 - m[worst]))
    size = "impossible" if certain[worst] else f"{(counts[worst] - expected) / (errors or 1):+.2f} standard errors"
    size = "none" if p_values[worst] == 1 else size
    statistic = f"largest of {len(m):,} deviations: {size}" if len(m) > 1 else f"deviation: {size}"
    text = f"{said(worst)} in {counts[worst]:,} {noun}, {expected:,.1f} are expected"
    return Check(name, statistic, min(1.0, len(m) * float(p_values[worst])), text)


def _beside_drawn(mechanism: Mechanism, payloads: Payloads, drawn: Payloads) -> Check:
    """Test whether the cells of two samples of n reports have one law."""
    from scipy import special  # takes a quarter of a second, and devices need none

    n = len(payloads)
    groups = np.arange(n) * _GROUPS // n
    one, other = (
        np.array([as_dense(cells) for cells in mechanism.tally([sample], groups, _GROUPS)])
        for sample in (payloads, drawn)
    )
    difference = one.mean(axis=0) - other.mean(axis=0)
    errors = np.sqrt((one.var(axis=0, ddof=1) + other.var(axis=0, ddof=1)) / _GROUPS)
    z = np.divide(difference, errors, out=np.zeros_like(difference), where=errors > 0)
    worst = int(np.abs(z).argmax())
    p_value = min(1.0, 2 * len(z) * float(special.stdtr(_GROUPS - 1, -abs(z[worst]))))
    statistic = f"largest of {len(z):,} differences {z[worst]:+.2f} standard errors"
    sums = one[:, worst].sum(), other[:, worst].sum()
    return Check("cells", statistic, p_value, f"cell {worst} is {sums[0]:,}, and {sums[1]:,} of {n:,} drawn reports")
