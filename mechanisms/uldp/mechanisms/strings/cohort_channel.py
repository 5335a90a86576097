"""Least squares for the shares of strings, the candidates, from the reports of cohorts with hash functions.

Source: Erlingsson, Pihur & Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response" (CCS 2014),
section 4, for the regression of the corrected counts of all cohorts on the positions of candidates. The errors are
ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.strings.cohorts import hash_positions
from uldp.schemas.arrays import Counts, Floats, Rows, Symbols

#: A number for each position of some cohorts, shape (M', L).
Table = npt.NDArray[np.floating]

# So many positions are hashed at once; they fit a core's cache.
_POSITIONS_AT_ONCE = 1 << 15
# The matrix of the design has this many entries at once.
_ENTRIES_AT_ONCE = 1 << 24
# Added to the diagonal of the normal matrix: strings that no cohort tells apart then share what they have together.
_RIDGE = 1e-9


@dataclass(frozen=True)
class CohortChannel:
    """The law of the cells: M cohorts of H hash functions into L positions, which a report supports or not.

    If a device holds up to l strings, it supports each of d positions that these hit with p, and each other one with
    (1 - dp)/(L - d). That is linear in the strings, and as of l = 1, in two ways: of a device with one string given the
    hash functions, and of each string alone over all hash functions, because what a device does not hold has the mean
    1/L whatever d is. So the scores of all strings have the expectations of l = 1, and what is not linear is like
    collisions: it falls with M.
    """

    cohorts: int  # M
    positions: int  # L, the buckets of local hashing or the bits of a Bloom filter
    hashes: int  # H
    p: float  # the probability that a report supports a position of its string
    q: float  # the probability that it supports any other, of a device with one string
    one_position: bool  # whether each report supports exactly one position; else, each is drawn alone
    held: int = 1  # l, the most strings that a device holds

    @property
    def least(self) -> float:
        """The least probability that a report supports a position: q, or of a device that hits l others."""
        return (1 - self.held * self.p) / (self.positions - self.held) if self.one_position else self.q

    @property
    def covered(self) -> float:
        """beta, the probability that a position is one of a random string: 1 - (1 - 1/L)^H."""
        return 1 - (1 - 1 / self.positions) ** self.hashes

    @property
    def chance(self) -> float:
        """The probability that a report supports a position, over all strings."""
        return self.q + (self.p - self.q) * self.covered

    @property
    def scatter(self) -> float:
        """The variance of a position of a random string, after what all positions have in common: less a covariance."""
        return (1 - 1 / self.positions) ** self.hashes - (1 - 2 / self.positions) ** self.hashes

    @property
    def independent(self) -> int:
        """The number of cells that the others do not determine."""
        return self.cohorts * (self.positions - self.one_position)

    def left(self, candidates: int) -> float:
        """Return the part of the independent cells that least squares on some candidates leaves."""
        return max(self.independent - candidates, 1) / self.independent

    @property
    def unit(self) -> float:
        """The score of a string that all users hold, in the mean: that of the diagonal of the normal matrix."""
        return self.positions * self.covered * (1 - self.covered)

    def error(self, n: int, fitted: int = 0) -> float:
        """Return the standard error of the share of a rare string at n reports, beside strings that are fitted."""
        variance = float(self.row_variance(np.array(self.covered)))
        return math.sqrt(variance / (self.unit * self.left(fitted)) / max(n, 1))

    @property
    def weight(self) -> float:
        """For how many users the heaviest report of a rare string counts, less what random ones have there."""
        return 1 / ((self.p - self.q) * (1 - self.covered if self.one_position else 1.0))

    def corrected(self, cells: "CohortCells") -> Floats:
        """Return the part of the supports, shape (M, L), that random strings do not explain, of all reports."""
        of_cohorts = cells.sizes[:, np.newaxis]
        corrected: Floats = (cells.supports - self.q * of_cohorts) / (self.p - self.q) - self.covered * of_cohorts
        return corrected / max(cells.n, 1)

    def support_variance(self, covered: Floats) -> Floats:
        """Return Var/(p - q)^2 of supports, at positions of so large shares of users."""
        gain = self.p - self.q
        probable = np.clip(self.q + gain * covered, self.least, self.p)
        return np.asarray(probable * (1 - probable) / gain**2)

    def of_scores(self, sums: Floats, variances: Floats) -> Floats:
        """Return Var of scores of one report, from the sums, (K,), of variances, (M, L), at positions."""
        beta = self.covered
        return np.asarray((sums * (1 - 2 * beta) + beta**2 * variances.sum()) / self.cohorts)

    def row_variance(self, covered: Floats) -> Floats:
        """Return Var/(p - q)^2 of positions in a report of their cohort, of so large shares of users."""
        gain = self.p - self.q
        if self.one_position:
            # That of many strings together may be below the least of any device, because it is not linear.
            return np.maximum(self.q + gain * covered, self.least) / gain**2
        noise = self.q * (1 - self.q) + gain * (1 - self.p - self.q) * covered
        return noise / gain**2 + self.scatter


class CohortCells(NamedTuple):
    """The cells of a window."""

    supports: Counts  # shape (M, L): the reports of each cohort that support each position
    sizes: Counts  # shape (M,): the reports of each cohort
    #: The law of the cells of the responses that devices keep; None if they keep none.
    response: CohortChannel | None = None
    #: In how many other windows of a sum the device of a report has another; see ``Estimate.repeated``.
    repeats: float = 0.0

    @property
    def n(self) -> int:
        """The number of all reports."""
        return int(self.sizes.sum())


def rows_at(channel: CohortChannel, symbols: Symbols, cohorts: Symbols) -> Rows:
    """Return which rows of a table are those of each string, (K, M' H); a repeated one is behind the table."""
    found = hash_positions(cohorts, symbols[:, np.newaxis], channel.hashes, channel.positions)
    found += (np.arange(len(cohorts)) * channel.positions)[:, np.newaxis]
    if channel.hashes > 1:
        found.sort(axis=2)
        found[:, :, 1:][found[:, :, 1:] == found[:, :, :-1]] = len(cohorts) * channel.positions
    return found.reshape(len(symbols), len(cohorts) * channel.hashes)


def sums_at(channel: CohortChannel, symbols: Symbols, tables: Sequence[Table], first: int = 0) -> Floats:
    """Return sum_cj B_x(c, j) a(c, j) for each table a and each string x, shape (tables, K), in bounded memory.

    B_x(c, j) is 1 if j is a position of x in cohort c, else 0. The symbols of strings are hashed in blocks, each time.
    The tables, one or more, are all of the same M' cohorts, of which ``first`` is the number of the first.
    """
    sums = np.empty((len(tables), len(symbols)))
    cohorts, padded = first + np.arange(len(tables[0])), [_padded(table) for table in tables]
    at_once = max(_POSITIONS_AT_ONCE // max(len(cohorts) * channel.hashes, 1), 1)
    for start in range(0, len(symbols), at_once):
        block = slice(start, start + at_once)
        rows = rows_at(channel, symbols[block], cohorts)
        for of_table, table in zip(sums, padded, strict=True):
            of_table[block] = table.take(rows, mode="clip").sum(axis=1)
    return sums


def _padded(table: Table) -> Table:
    """Return the rows of a table, and one more of 0."""
    return np.append(table, np.zeros(1, table.dtype))


class Candidates:
    """The positions of candidates in each cohort, and the normal matrix of least squares.

    With B_x(c, j) = 1 if j is a position of x in cohort c, and D_x = B_x - beta, the normal matrix is
    G_xz = (1/M) sum_cj D_x(c, j) D_z(c, j).
    """

    def __init__(self, channel: CohortChannel, symbols: Symbols) -> None:
        self.channel, self.size = channel, len(symbols)
        self._rows = rows_at(channel, symbols, np.arange(channel.cohorts)).astype(np.int32)

    def sums(self, table: Floats) -> Floats:
        """Return ``sums_at`` of one table of all cohorts, shape (K,)."""
        return np.asarray(_padded(table).take(self._rows).sum(axis=1))

    def covered(self, shares: Floats) -> Floats:
        """Return the share of users with each position, shape (M, L), if all other strings are like random ones."""
        channel = self.channel
        weights, cells = np.repeat(shares, self._rows.shape[1]), channel.cohorts * channel.positions
        of_candidates = np.bincount(self._rows.ravel(), weights, cells + 1)[:-1]
        covered: Floats = of_candidates + channel.covered * (1 - shares.sum())
        return covered.reshape(channel.cohorts, channel.positions)

    @cached_property
    def normal(self) -> Floats:
        """G, shape (K, K)."""
        channel = self.channel
        # float32 counts the common positions exactly: there are at most 2^24.
        common = np.zeros((self.size, self.size), dtype=np.float32)
        at_once = max(_ENTRIES_AT_ONCE // max(self.size * channel.positions, 1), 1)
        for start in range(0, channel.cohorts, at_once):
            stop = min(start + at_once, channel.cohorts)
            cells = (stop - start) * channel.positions
            bits = np.zeros((self.size, cells + 1), dtype=np.float32)
            at = self._rows[:, start * channel.hashes : stop * channel.hashes] - start * channel.positions
            np.put_along_axis(bits, np.minimum(at, cells), 1, axis=1)
            bits[:, cells] = 0
            common += bits @ bits.T
        beta, own = channel.covered, np.diag(common).astype(np.float64)
        centred: Floats = common.astype(np.float64) - beta * (own[:, np.newaxis] + own)
        return np.asarray(centred / channel.cohorts + channel.positions * beta**2)

    @cached_property
    def inverse(self) -> Floats:
        """The inverse of G, shape (K, K)."""
        return np.asarray(np.linalg.inv(self.normal + _RIDGE * np.eye(self.size)), dtype=np.float64)

    @cached_property
    def units(self) -> Floats:
        """Shape (K,): the diagonal of G."""
        return np.diag(self.normal).copy()

    def fit(self, cells: CohortCells) -> Floats:
        """Return f-hat, shape (K,), which may be negative.

        A report of cohort c scores psi_x = sum_j D_x(c, j) ((y_j - q)/(p - q) - beta), where y_j is 1 if it supports j.
        The mean score b has the expectation G f, plus the collisions of all other strings. So f-hat = G^-1 b is
        unbiased over the hash functions, and over the reports alone if each user holds one string, a candidate.
        """
        corrected = self.channel.corrected(cells)
        return np.asarray(self.inverse @ (self.sums(corrected) - self.channel.covered * corrected.sum()))

    def residuals(self, values: Floats, corrected: Floats) -> Floats:
        """Return what these shares leave of ``CohortChannel.corrected``, shape (M, L)."""
        return corrected - (self.covered(values) - self.channel.covered) / self.channel.cohorts

    def collisions(self, values: Floats, cells: CohortCells) -> float:
        """Return tau^2, the estimated sum of the squared shares of all other strings, from the residuals of ``fit``."""
        channel, covered, sizes = self.channel, self.covered(values), cells.sizes[:, np.newaxis]
        expected = channel.q / (channel.p - channel.q) + covered
        residual = ((cells.supports / (channel.p - channel.q) - sizes * expected) ** 2).sum() / channel.left(self.size)
        noise = channel.support_variance(covered)
        noise += cells.repeats * (cells.response or channel).support_variance(covered)
        return max(float((residual - (sizes * noise).sum()) / (channel.unit * (sizes**2.0).sum())), 0.0)

    def cut(self, values: Floats) -> Floats:
        """Return f-hat, cut to shares from 0 to 1 that sum to at most l."""
        positive = np.clip(values, 0.0, 1.0)
        return np.asarray(positive / max(positive.sum() / self.channel.held, 1.0))
