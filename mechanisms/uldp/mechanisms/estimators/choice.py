"""The choice among candidates for the published shares, by their risk on reports that they have not seen.

The reports of a window are split at random into two halves. Candidates A and W are fitted to each of them, and scored
on the unbiased estimate t of the other, which is independent of them:

    d = |W|^2 - |A|^2 - 2 (W - A)^T t            E[d] = E |W - r|^2 - E |A - r|^2

Given the fits, d has the variance 4 (W - A)^T Cov[t] (W - A). Candidates cannot enter as what they are on the whole
window, because an estimate that follows the noise of t would seem right.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, default_rng

from uldp.mechanisms.estimators.simplex import Box
from uldp.schemas.arrays import Counts, Floats

# Four splits where they take little, and fewer of large domains: so many symbols in all, and one split at least.
_MOST_SPLITS, _MOST_SYMBOLS = 4, 4096
# NumPy draws no hypergeometric numbers of more.
_MOST_DRAWN = 10**9

#: Estimates the shares, shape (rows, k), inside of the box from cells, shape (rows, cells), of n reports each.
Candidate = Callable[[Counts, int, Box], Floats]


@dataclass(frozen=True)
class Scoring:
    """What the choice asks of a mechanism. Cells have rows, of shape (rows, cells), of samples of one window."""

    #: Draws the cells of m of the n reports behind some cells, as if it knew each report: (cells, n, m, rng).
    part: Callable[[Counts, int, int, Generator], Counts]
    unbiased: Callable[[Counts, int], Floats]  # the unbiased estimates from cells of n reports, shape (rows, k)
    covariance: Callable[[Floats], Floats]  # the product of that of one report, shape (k, j) to (k, j)
    #: The ends of intervals of all shares at once, from cells of n reports; each of shape (rows, k).
    box: Callable[[Counts, int], Box]


def chosen(candidates: Sequence[Candidate], cells: Counts, n: int, scoring: Scoring) -> Floats:
    """Return the first candidate's shares, or those of another one whose risk is clearly less, shape (k,)."""
    best = int(np.argmin(np.add(*compared(candidates, cells, n, scoring)))) if n > 1 else 0
    rows = cells[np.newaxis]
    return np.asarray(candidates[best](rows, n, scoring.box(rows, n))[0])


def compared(candidates: Sequence[Candidate], cells: Counts, n: int, scoring: Scoring) -> tuple[Floats, Floats]:
    """Return the risk of each candidate less that of the first, and its standard error; both are 0 for the first.

    Splits are of the same reports, so their mean has an error between that of one split and that of independent ones.
    This is the geometric mean of both. For the arguments see ``chosen``; there are two reports or more.
    """
    sample, rng = n // 2, default_rng(seed_of(cells))
    halves = []
    for _ in range(max(1, min(_MOST_SPLITS, _MOST_SYMBOLS // len(cells)))):
        one = scoring.part(cells, n, sample, rng)
        rest = cells - one
        halves += [one, rest if n == 2 * sample else scoring.part(rest, n - sample, sample, rng)]
    fitted = np.array(halves)
    box, held = scoring.box(fitted, sample), scoring.unbiased(fitted, sample)
    held = held.reshape(-1, 2, held.shape[-1])[:, ::-1].reshape(held.shape)
    first, *others = (candidate(fitted, sample, box) for candidate in candidates)
    differences, errors = [0.0], [0.0]
    for other in others:
        apart = other - first
        differences.append(float((apart * (other + first - 2 * held)).sum(axis=1).mean()))
        # Of one split, whose two halves are independent of each other.
        variance = 2 / sample * (apart * scoring.covariance(apart.T).T).sum(axis=1).mean()
        errors.append(float(np.sqrt(max(variance, 0.0) / np.sqrt(len(fitted) / 2))))
    return np.array(differences), np.array(errors)


def seed_of(counts: Counts) -> int:
    """Return a number that follows from all counts, by which equal counts are split alike."""
    return zlib.crc32(counts.astype("<i8").tobytes())


def part_of_cells(cells: Counts, n: int, m: int, rng: Generator) -> Counts:
    """Draw the cells of m of n reports, each of which is in one cell: multivariate hypergeometric."""
    if n < _MOST_DRAWN:
        return rng.multivariate_hypergeometric(cells, m, method="marginals")
    noise = rng.normal(0.0, np.sqrt(cells * (m / n) * (1 - m / n)))
    return _within(cells * (m / n) + noise - cells / n * noise.sum(), cells)


def part_of_each(counts: Counts, n: int, m: int, rng: Generator) -> Counts:
    """Draw how many of m of n reports support each symbol, of each symbol alone: hypergeometric.

    That is exact for independent bits. In reports of sets, or of cells that support blocks, two symbols that a device
    does not hold have correlations of about -1/k, or none. Then halves are correlated by as much as that, so that the
    risk of a candidate seems less by up to 1/k of the part of it that is noise.
    """
    if n < _MOST_DRAWN:
        return rng.hypergeometric(counts, n - counts, m)
    noise = rng.normal(0.0, np.sqrt(counts * (1 - counts / n) * (m / n) * (1 - m / n)))
    return _within(counts * (m / n) + noise, counts)


def _within(drawn: Floats, most: Counts) -> Counts:
    return np.asarray(np.clip(np.rint(drawn).astype(np.int64), 0, most))
