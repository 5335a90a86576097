"""Mechanisms that report a set of symbols of a fixed size: subset selection, and blocks of a design, uHR and uBD.

Sources: Ye & Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential Privacy" (IEEE
Transactions on Information Theory 64, 2018); Wang et al., "Mutual Information Optimally Local Private Discrete
Distribution Estimation" (2016). The survey of Wang et al. (Sensors 20, 2020), section 3.1.5, has p and q as here. In
the probabilities of its equation (48) the factor w must be k, so that they sum to 1.

Yoon, Park, Nam & Lee, "Fundamental Limit of Discrete Distribution Estimation under Utility-Optimized Local Differential
Privacy" (arXiv 2509.24173) for the family of designs, and that one of it is optimal; Park, Nam & Lee, "Exactly Optimal
and Communication-Efficient Private Estimation via Block Designs" (arXiv 2305.01261) and Acharya, Sun & Zhang, "Hadamard
Response" (AISTATS 2019) for their forms without non-sensitive symbols. Probabilities and estimates are derived here.
"""

import math
from typing import cast

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.block_designs import BlockDesign
from uldp.mechanisms.laws.block_cells import BlockCells
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, sensitive_symbols, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, PureMechanism, Randomness
from uldp.mechanisms.protocol.noise import UniformNoise, pack_rows
from uldp.mechanisms.randomizers.packed_bits import row_totals, supports_text
from uldp.mechanisms.randomizers.reports import BitReports, CountedReports
from uldp.schemas.arrays import Floats, Mask, Packed, Payloads, Symbols, Values


def best_chosen(size: int, epsilon: float) -> int:
    """Return about the number of symbols in a set with the least variance: |Z|/(e^epsilon + 1), rounded."""
    return max(round(size / (math.exp(epsilon) + 1)), 1)


class SubsetSelection(PureMechanism, BitReports, UniformNoise):
    """Subset selection, also called the w-subset mechanism, and its utility-optimized form, uSS.

    A report is a set of w of the v symbols of Z_S, or a symbol of Z_N. With E = e^epsilon, the device draws a set of w
    symbols of Z_S, uniform and independent of its true symbol z. With probability v/(wE+v-w) it reports this set.
    Otherwise, for z in Z_S, it reports it too if z is in it, and if not, with z in place of a uniform member; for z in
    Z_N, it reports z. So each set with z is E times as probable as each set without z. A report supports the symbols
    of its set, or the symbol of Z_N, with

        p = wE/(wE+v-w)    q = (p (w-1) + (1-p) w)/(v-1)    q' = w/(wE+v-w)    on Z_S
        p = w(E-1)/(wE+v-w)                                                    on Z_N

    where p is for the true symbol, q for another one of Z_S, and q' if the true symbol is in Z_N. With w = 1 this is
    (utility-optimized) randomized response.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the sets. For any set, its likelihoods under two
    true symbols differ by at most a factor E. A symbol of Z_N reveals itself. If all symbols are sensitive, this is
    epsilon-LDP. The drawn set is independent of z, and the device rounds the probability of reporting it up, so the
    finite resolution of the noise keeps the guarantee (``SystemRandomness``).

    A payload is one bit per symbol, most significant bit first, padded with zeros to whole bytes; exactly w bits of Z_S
    are set, or one of Z_N. Do not send the members as a list in the order of their choice: Algorithm 2 of the survey
    inserts the true symbol first, so such a list reveals it.
    """

    bits_at_once = 1 << 20  # a byte for each, and no float

    def __init__(self, size: int, epsilon: float, chosen: int | None = None, *, sensitive: Mask | None = None) -> None:
        self.sensitive = np.ones(size, dtype=np.bool_) if sensitive is None else np.array(sensitive, dtype=np.bool_)
        v = int(self.sensitive.sum())
        if size < 2:
            raise ValueError(f"subset selection needs two symbols or more, got size {size}")
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        self.size = size
        self._of_bits(size)
        self.chosen = w = best_chosen(v, epsilon) if chosen is None else chosen
        if not 1 <= w <= max(v - 1, min(v, 1)):
            raise ValueError(f"a set has 1 to {v - 1} of {v} symbols, got {w}")
        self.chance_support = (w - 1) / max(v - 1, 1)
        self._members = np.flatnonzero(self.sensitive)
        self._place = np.where(self.sensitive, np.cumsum(self.sensitive) - 1, 0)
        self.noise_probability = v / (w * math.expm1(epsilon) + v)
        missed = self.noise_probability * (v - w) / v
        # With one sensitive symbol there is no other, and q is that of a true symbol of Z_N.
        q = ((1 - missed) * (w - 1) + missed * w) / (v - 1) if v > 1 else self.noise_probability
        self.channel = Channel(
            np.where(self.sensitive, 1 - missed, 1 - self.noise_probability),
            np.where(self.sensitive, q, 0.0),
            independent_bits=False,
            supported=w,
            q_non_sensitive=np.where(self.sensitive, min(self.noise_probability * w / v, q), 0.0),
        )

    def _drawn(self, symbols: Values, randomness: Randomness) -> Mask:
        reports, places = np.arange(len(symbols)), self._place[symbols]
        sets, members = self._uniform_sets(len(symbols), randomness)
        noisy = randomness.random(len(symbols)) < self.noise_probability
        replaced = members[reports, randomness.integers(0, self.chosen, len(symbols))]
        sets[reports, replaced] = noisy | sets[reports, places]
        sets[reports, places] |= ~noisy
        named = ~(noisy | self.sensitive[symbols])
        sets &= ~named[:, np.newaxis]
        bits = self._over_symbols(sets)
        bits[reports, symbols] |= named
        return bits

    def _over_symbols(self, sets: Mask) -> Mask:
        """Return the bits of sets of Z_S over Z, shape (n, |Z|)."""
        if self.sensitive.all():
            return sets
        bits = np.zeros((len(sets), self.size), dtype=np.bool_)
        bits[:, self._members] = sets
        return bits

    @property
    def log_payloads(self) -> float:
        w, v = self.chosen, len(self._members)
        return math.lgamma(v + 1) - math.lgamma(w + 1) - math.lgamma(v - w + 1)

    def uniform(self, n: int, randomness: Randomness) -> Packed:
        def bits(block: slice) -> Mask:
            return self._over_symbols(self._uniform_sets(len(range(n)[block]), randomness)[0])

        return pack_rows(n, self.size, bits, self.bits_at_once)

    def _uniform_sets(self, n: int, randomness: Randomness) -> tuple[Mask, Symbols]:
        """Draw n uniform sets of Z_S, and return their bits, shape (n, v), and their members, shape (n, w).

        Each set is drawn by Floyd's algorithm (Bentley & Floyd, "Programming Pearls: A Sample of Brilliance", 1987):
        step j adds a uniform symbol of the first j+1, or symbol j if that is in the set. All sets are equally probable.
        """
        reports, v = np.arange(n), len(self._members)
        sets = np.zeros((n, v), dtype=np.bool_)
        members = np.empty((n, self.chosen), dtype=np.int64)
        for step, last in enumerate(range(v - self.chosen, v)):
            drawn = randomness.integers(0, last + 1, n)
            members[:, step] = np.where(sets[reports, drawn], last, drawn)
            sets[reports, members[:, step]] = True
        return sets, members

    def device_form(self) -> DeviceForm:
        return {
            "form": "subset",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "chosen": self.chosen,
            "noise": threshold(self.noise_probability),
        }

    def possible(self, payloads: Payloads) -> Mask:
        sets = cast(Packed, payloads)
        totals, named = row_totals(sets), self.named(sets)
        fitting = ((named == 0) & (totals == self.chosen)) | ((named == 1) & (totals == 1))
        return np.asarray(self.padded(sets) & fitting)


class BlockResponse(PureMechanism, CountedReports, UniformNoise):
    """Utility-optimized Hadamard response (uHR) and block designs (uBD): a report is a block, or a symbol of Z_N.

    The design has b blocks; each point is in h of them, and each two points are in t together. The points are the
    sensitive symbols, and maybe more that nobody holds. With E = e^epsilon and c = 1/(h (E-1) + b), a block y has the
    probability

        c E    for a true symbol of Z_S in y       c    for any other true symbol

    and a true symbol of Z_N reports itself with the probability that is left, a = h (E-1) c. Both follow one rule: with
    probability b c report a uniform block, otherwise the truth, which is the symbol itself in Z_N, and a uniform one of
    the h blocks that hold a symbol of Z_S. A report supports the symbols of Z_S in its block, or its symbol of Z_N:

        p = h c E     q = c (h + t (E-1))     q' = h c    on Z_S        p = a     q = 0    on Z_N

    where q is for another true symbol of Z_S, and q' for one of Z_N. The design of single points is uRR.

    Guarantee: one report is (Z_S, Y_P, epsilon)-ULDP, where Y_P are the blocks. For every block, its likelihoods under
    any two true symbols differ by at most a factor E. A report outside of Y_P reveals its true symbol, which is in Z_N.
    The device rounds the probability of a uniform block up, so the finite resolution of the noise keeps this.

    A payload is a symbol: the number of a block, or b and the position in Z_N of a symbol of Z_N.
    """

    def __init__(self, sensitive: Mask, epsilon: float, design: BlockDesign) -> None:
        self.sensitive = np.array(sensitive, dtype=np.bool_)
        self.guarantee = Guarantee.of(self.sensitive, epsilon)
        v = int(self.sensitive.sum())
        if design.points < v:
            raise ValueError(f"{v} sensitive symbols need a design of as many points, got {design.points}")
        self.size, self.design = len(self.sensitive), design
        b, h, t = design.blocks, design.holding, design.together
        c = 1 / (h * math.expm1(epsilon) + b)
        self.noise_probability = b * c
        self.chance_support = t / h
        self.blocks = BlockCells(design, self.sensitive, uniform=c, named=1 - b * c)
        self._of_payloads(self.blocks.cells)
        self.channel = Channel(
            p=np.where(self.sensitive, 1 - (b - h) * c, 1 - b * c),
            q=np.where(self.sensitive, c * (h + t * math.expm1(epsilon)), 0.0),
            independent_bits=False,
            q_non_sensitive=np.where(self.sensitive, h * c, 0.0),
            blocks=self.blocks,
        )
        # The point of each symbol of Z_S, and the payload of each symbol of Z_N.
        self._point = np.where(self.sensitive, np.cumsum(self.sensitive) - 1, 0)
        self._own = b + np.cumsum(~self.sensitive) - 1

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n = len(symbols)
        noisy = randomness.random(n) < self.noise_probability
        uniform = self.uniform(n, randomness)
        block = self.design.holding_block(self._point[symbols], randomness.integers(0, self.design.draws, n))
        truth = np.where(self.sensitive[symbols], block, self._own[symbols])
        return np.where(noisy, uniform, truth).astype(np.uint32)

    def law(self, r: Floats) -> Floats:
        return self.blocks.law(r)

    def uniform(self, n: int, randomness: Randomness) -> npt.NDArray[np.uint32]:
        return randomness.integers(0, self.design.blocks, n).astype(np.uint32)

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        chosen = np.zeros(self.statistic_size, dtype=np.int64)
        chosen[payload] = 1
        symbols = np.flatnonzero(self.fold(chosen))
        if payload >= self.design.blocks:
            return f"symbol {symbols[0]} of {self.size:,}, which is not sensitive"
        of_sensitive = supports_text(symbols, int(self.sensitive.sum()), "sensitive symbols")
        return f"block {payload:,} of {self.design.blocks:,}, {of_sensitive}"

    def device_form(self) -> DeviceForm:
        return {
            "form": "design",
            "size": self.size,
            "sensitive": sensitive_symbols(self.sensitive),
            "noise": threshold(self.noise_probability),
            **self.design.device_numbers(),
        }
