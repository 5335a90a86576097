"""A mechanism as a known linear channel; this module defines how all estimates follow from support counts.

A report supports a set of symbols. If C_z of n reports support symbol z,

    E[C_z / n] = m_z = p_z r_z + q_z (1 - r_z)            r-hat_z = (C_z / n - q_z) / (p_z - q_z)

Wang et al. (USENIX Security 2017, section 3) call the channel pure if p and q are scalars. Vectors also cover the
utility-optimized mechanisms of Murakami & Kawamoto (USENIX Security 2019), where q is 0 on the non-sensitive symbols.

Some utility-optimized mechanisms support a sensitive symbol less often from behind a non-sensitive one than from behind
another sensitive one. With R_N for the sum of r over the non-sensitive symbols, which have the same p,

    m_z = p_z r_z + q_z (1 - R_N - r_z) + q'_z R_N      r-hat_z = (C_z / n - q_z + (q_z - q'_z) R-hat_N) / (p_z - q_z)

on Z_S. R-hat_N follows from the counts of the non-sensitive symbols, whose reports name them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.laws.block_cells import BlockCells
from uldp.mechanisms.laws.law import Cumulants, of_points
from uldp.schemas.arrays import Counts, Floats, Mask, Reports

#: The product of a matrix, shape (|Z|, |Z|), with vectors, shape (|Z|, j).
Product = Callable[[Floats], Floats]


# Probabilities of a report sum to 1 but for so much.
_ROUNDING = 1e-9


def _readonly(values: npt.ArrayLike) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


class Incidence(Protocol):
    """Which symbols each cell supports, where each report is in one cell: products with a matrix of 0 and 1."""

    def supports(self, cells: Floats) -> Floats:
        """Sum vectors over the cells that support each symbol; shape (cells, j) becomes (|Z|, j)."""

    def supported(self, symbols: Floats) -> Floats:
        """Sum vectors over the symbols that each cell supports: the transpose of ``supports``."""


@dataclass(frozen=True, eq=False)
class Channel:
    """The vectors p and q of a mechanism over Z.

    Attributes:
        p: Shape (|Z|,): probability that a report supports z, if its true symbol is z.
        q: Shape (|Z|,): probability that a report supports z, if its true symbol is a sensitive one, but not z. It is 0
            for the non-sensitive symbols.
        independent_bits: Whether a report holds one independent bit per symbol.
        supported: The number w of sensitive symbols that a report supports, unless it supports one non-sensitive symbol
            alone. If it is 1, the counts are multinomial, and a report supports none where the probabilities of a true
            symbol sum to less than 1. If it is more, all sensitive symbols have the same p and q,
            and apart from the true symbol, all sets of w of them are equally probable.
        q_non_sensitive: Shape (|Z|,): q', the probability that a report supports z, if its true symbol is a
            non-sensitive one, but not z. It is q unless given.
        blocks: The symbols that each cell supports, if a report is in one cell that supports several of them.
        held: The number l of different true symbols that a device holds. The shares r of symbols sum to l then, and
            each is at most 1. If it is more than 1, all symbols are sensitive and have the same p and q; all sets of w
            symbols with a true one are equally probable, and so are all others. With ``independent_bits``, a report
            supports a symbol that the device does not hold independently of every other one.
    """

    p: Floats
    q: Floats
    independent_bits: bool
    supported: int = 1
    q_non_sensitive: Floats | None = None
    blocks: BlockCells | None = None
    held: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _readonly(self.p))
        object.__setattr__(self, "q", _readonly(self.q))
        if self.p.ndim != 1 or self.p.shape != self.q.shape:
            raise ValueError(f"p and q must be vectors of one length, got shapes {self.p.shape} and {self.q.shape}")
        if not ((self.q >= 0) & (self.q < self.p) & (self.p <= 1)).all():
            raise ValueError("a channel needs 0 <= q < p <= 1 for every symbol; raise epsilon, which is 0 or too small")
        if self.held > 1 and (self.blocks is not None or np.ptp(self.p) or np.ptp(self.q)):
            raise ValueError("a channel of several held symbols has no blocks, and the same p and q for all")
        p, q = self.p[self._sensitive], self.q[self._sensitive]
        if self.supported > 1 and (self.independent_bits or np.ptp(p) or np.ptp(q)):
            raise ValueError(
                "a channel of several supported symbols needs dependent bits, and the same p and q for all"
            )
        if self.q_non_sensitive is not None:
            if not ((self.q_non_sensitive >= 0) & (self.q_non_sensitive <= self.q)).all():
                raise ValueError("a non-sensitive symbol must not support another one more often than a sensitive one")
            if self.independent_bits or (self.p[~self._sensitive] != self.named).any():
                raise ValueError("a channel with q' needs dependent bits, and the same p for all non-sensitive symbols")

    @property
    def size(self) -> int:
        """|Z|."""
        return len(self.p)

    @property
    def one_symbol(self) -> bool:
        """Whether each report supports one symbol, so that the counts determine the likelihood."""
        return self._one_at_most and not self.may_support_none

    @property
    def _one_at_most(self) -> bool:
        return not self.independent_bits and self.supported == 1 and self.held == 1 and self.blocks is None

    @cached_property
    def may_support_none(self) -> bool:
        """Whether a report supports one symbol or none: the probabilities of some true symbol sum to less than 1."""
        sums = self.gain + self.q.sum() - np.where(self._sensitive, 0.0, self.loss.sum())
        return self._one_at_most and bool((sums < 1 - _ROUNDING).any())

    @cached_property
    def gain(self) -> Floats:
        """p - q, by which a true symbol raises the probability of its own support."""
        return _readonly(self.p - self.q)

    @cached_property
    def least_noise(self) -> float:
        """The least q (1 - q), or q' (1 - q'), of a symbol with q > 0; infinite if there is none."""
        q = self.q if self.q_non_sensitive is None else self.q_non_sensitive
        return float((q * (1 - q))[self._sensitive].min(initial=np.inf))

    @cached_property
    def _sensitive(self) -> Mask:
        """Shape (|Z|,): whether noise supports each symbol."""
        return self.q > 0

    @cached_property
    def named(self) -> float:
        """The probability that a report names its true symbol, if that is not sensitive."""
        return float(self.p[~self._sensitive].max(initial=0.0)) or 1.0

    @cached_property
    def loss(self) -> Floats:
        """q - q', by which a non-sensitive true symbol lowers the probability of supporting each symbol."""
        if self.q_non_sensitive is None or self._sensitive.all():
            return _readonly(np.zeros(self.size))
        return _readonly(self.q - self.q_non_sensitive)

    @cached_property
    def names(self) -> Floats | None:
        """Shape (|Z|,): s, by which a report that names a non-sensitive symbol estimates R_N; None if q' is q."""
        return _readonly(np.where(self._sensitive, 0.0, 1 / self.named)) if self.loss.any() else None

    @cached_property
    def joined(self) -> "Channel":
        """The channel of the sensitive symbols, and of one more in place of all others, if there are any."""
        inside = self._sensitive
        if inside.all():
            return self
        p, q, noise = (np.append(each[inside], 0.0) for each in (self.p, self.q, self.q - self.loss))
        p[-1] = self.named
        blocks = None if self.blocks is None else self.blocks.joined()
        return Channel(p, q, self.independent_bits, self.supported, noise, blocks)

    def non_sensitive(self, r: Floats) -> Floats:
        """Return R_N, the sum of ``r``, or each row, over the non-sensitive symbols, cut to [0, 1]; shape (..., 1)."""
        free: Floats = r[..., ~self._sensitive].sum(axis=-1, keepdims=True)
        return free.clip(0.0, 1.0)

    def noise(self, r: Floats) -> Floats:
        """Return the probability that a report supports each symbol, if nobody held it, but else r was as it is."""
        if self.q_non_sensitive is None:
            return self.q
        return self.q - self.loss * self.non_sensitive(r)

    def support_probability(self, r: Floats) -> Floats:
        """Return m, the probability that a report supports each symbol, if true symbols are distributed as ``r``."""
        return self.noise(r) + self.gain * r

    def unbiased(self, counts: Counts, n: Reports) -> Floats:
        """Estimate r without bias from support counts (eq. 3, solved for r); entries may be negative.

        This takes rows of several windows too, and so does ``cumulants``. ValueError as ``check``.
        """
        self.check(counts, n)
        if self.q_non_sensitive is None:
            return (counts / n - self.q) / self.gain
        names = counts[..., ~self._sensitive].sum(axis=-1, keepdims=True)
        return np.asarray((counts / n - self.q + self.loss * names / (n * self.named)) / self.gain)

    def check(self, counts: Counts, n: Reports) -> None:
        """Raise ValueError if ``n`` is not positive, or ``counts``, or each row of it, is not of the shape of p."""
        if (n if isinstance(n, int) else n.min()) <= 0:
            raise ValueError(f"an estimate needs one report or more, got n={n}")
        if counts.shape[-1:] != self.p.shape:
            raise ValueError(f"counts have shape {counts.shape}, but the channel has {self.size} symbols")

    def cumulants(self, r: Floats) -> Cumulants:
        """Return the cumulants of what one report adds to each r-hat_z, for users' values that are i.i.d. from ``r``.

        A support is one event with the probability m, so its score has the variance m (1 - m) / (p - q)^2. With q',
        a report that names a non-sensitive symbol has a third score, because it estimates R_N.
        """
        m, gain = self.support_probability(r), self.gain
        if self.names is None:
            variance, step = m * (1 - m) / gain**2, np.maximum(m, 1 - m) / gain
            low, high = (np.broadcast_to(each / gain, m.shape) for each in (-self.q, 1 - self.q))
            return Cumulants(variance, variance * (1 - 2 * m) / gain, step, low, high)
        # A report that names a symbol supports no sensitive one; of a named symbol, its support is the name.
        named = np.where(self.loss > 0, self.named * self.non_sensitive(r), 0.0)
        scores = [1 - self.q, self.loss / self.named - self.q, -self.q]
        rows = np.stack([np.broadcast_to(each / gain, m.shape) for each in scores])
        return of_points(np.stack([m, named, 1 - m - named]), rows)

    def variance(self, r: Floats, n: Reports) -> Floats:
        """Return Var[r-hat_z] of n reports; see ``cumulants``."""
        return self.cumulants(r).variance / n

    def variance_given_values(self, r: Floats, n: int, non_sensitive: Floats | None = None) -> Floats:
        """Return Var[r-hat_z] from the devices' randomness alone, for users' values with the fixed histogram ``r``.

        Its shares need not sum to one, because each entry follows from its own share and R_N, which is that of ``r``
        unless given.
        """
        free = np.minimum(self.non_sensitive(r) if non_sensitive is None else non_sensitive, 1 - r)
        own, others = self.p * (1 - self.p), self.q * (1 - self.q)
        # A report of a non-sensitive symbol either supports z, or it names its symbol and adds t; q is its mean.
        from_free = self.loss**2 / self.named - self.loss - self.q**2 + self.q
        return (r * own + (1 - r - free) * others + free * from_free) / (n * self.gain**2)

    def pair_probabilities(self) -> tuple[float, float, float]:
        """Return E[y_i y_j] of sensitive symbols, where a report supports w > 1 of these, or one non-sensitive symbol.

        A report of a sensitive symbol supports w - 1 of the v - 1 others with probability p, and else w of them. A set
        from behind a non-sensitive symbol is uniform. So the probabilities are

            p (w-1)/(v-1)      (p (w-1)(w-2) + (1-p) w (w-1)) / ((v-1)(v-2))      q' (w-1)/(v-1)

        if the true symbol is i or j, if it is another sensitive one, and if it is not sensitive.

        If a device holds l symbols, the first is for i, j or both among them, because all sets with a held symbol are
        equally probable. A set without one is u/p times as probable, where q = p (1 - o) + u o, and o is the part of
        the sets with i that have no held symbol. So the second is p (w-1)/(v-1) (1 - o' + o' u/p), with o' for the sets
        with i and j.
        """
        first = int(np.argmax(self._sensitive))
        if self.independent_bits:  # of hashes: a symbol that is not held is in the bucket of a report with q
            return float(self.p[first] * self.q[first]), float(self.q[first]) ** 2, 0.0
        v, w, p = int(self._sensitive.sum()), self.supported, float(self.p[first])
        alone = (w - 1) / (v - 1)
        if self.held > 1:
            one, two = (float(part_without(v - own, self.held, np.float64(w - own))) for own in (1, 2))
            rest = 1 - (p - float(self.q[first])) / (p * one) if one else 1.0
            return p * alone, p * alone * (1 - two + rest * two), 0.0
        others = (w - 1) * (p * (w - 2) + (1 - p) * w) / ((v - 1) * (v - 2))
        return p * alone, others, float(self.q[first] - self.loss[first]) * alone

    def moments(self, r: Floats) -> Product:
        """Return the product with E[y y^T], for the supports y of one report, without the matrix.

        E[y_i^2] = m_i. Of two symbols, a report of one symbol never supports both. Independent bits have
        E[y_i y_j] = m_i m_j - (p_i - q_i)(p_j - q_j) r_i r_j, which is linear in r. If a report supports several
        symbols, E[y_i y_j] = b + (a-b)(r_i + r_j) + (c-b) R_N on Z_S, with a, b and c from ``pair_probabilities``.
        Of several held symbols it is b + (a-b)(r_i + r_j - r_ij), where r_ij is the share of devices that hold both: it
        is taken as r_i r_j, as of symbols that are held independently, or of one known set.
        """
        if self.blocks is not None:
            blocks, law = self.blocks, self.blocks.law(r)[:, np.newaxis]
            return lambda w: blocks.supports(law * blocks.supported(w))
        m = self.support_probability(r)
        if self.independent_bits and self.held == 1:
            g = self.gain * r
            own = (m * (1 - m) + g**2)[:, np.newaxis]
            return lambda w: own * w + np.outer(m, m @ w) - np.outer(g, g @ w)
        if self.supported == 1 and not self.independent_bits:
            return lambda w: m[:, np.newaxis] * w
        a, b, c = self.pair_probabilities()
        inside = self._sensitive.astype(np.float64)
        r_s, both, held = inside * r, b + (c - b) * self.non_sensitive(r), float(self.held > 1)
        alone = (m - both * inside - (a - b) * r_s * (2 - held * r_s))[:, np.newaxis]

        def of_sets(w: Floats) -> Floats:
            sums = inside @ w
            pairs = np.outer(inside, both * sums + (a - b) * (r_s @ w))
            pairs += (a - b) * np.outer(r_s, sums - held * (r_s @ w))
            return alone * w + pairs

        return of_sets

    def scores(self, w: Floats) -> Floats:
        """Return u = (I + s l^T) G w, what each symbol that a report supports adds to w^T r-hat; shape (|Z|, j).

        r-hat = G (y + l s^T y) + const, with G = diag(1/(p - q)), l = q - q', and s = 1/p on the non-sensitive symbols,
        0 on others; see ``unbiased``.
        """
        u = w / self.gain[:, np.newaxis]
        return u if self.names is None else u + np.outer(self.names, self.loss @ u)

    def of_supports(self, y: Floats) -> Floats:
        """Return G (I + l s^T) y, the transpose of ``scores``; shape (|Z|, j)."""
        y = y if self.names is None else y + np.outer(self.loss, self.names @ y)
        return np.asarray(y / self.gain[:, np.newaxis])

    def covariance(self, r: Floats) -> Product:
        """Return the product with n Cov[r-hat], for users' values that are i.i.d., without the matrix."""
        m, moments = self.support_probability(r), self.moments(r)

        def times(w: Floats) -> Floats:
            u = self.scores(w)
            return self.of_supports(moments(u) - np.outer(m, m @ u))

        return times

    def expected_l1(self, r: Floats, n: int) -> float:
        """Return E[l1(r-hat, r)] of the unbiased estimate for large n: sqrt(2/pi) times the sum of standard deviations.

        Equations (12) for uRR and (17) for uRAP are this sum for their p and q.
        """
        return math.sqrt(2 / math.pi) * float(np.sqrt(self.variance(r, n)).sum())


def part_without(size: int, held: int, chosen: Floats | np.float64) -> Floats:
    """Return C(size-held, chosen)/C(size, chosen), the part of sets without any of ``held`` symbols."""
    # prod of (size - chosen - i)/(size - i) for i below held
    part = np.ones_like(chosen, dtype=np.float64)
    for i in range(held):
        part = part * (np.maximum(size - chosen - i, 0.0) / (size - i))
    return part
