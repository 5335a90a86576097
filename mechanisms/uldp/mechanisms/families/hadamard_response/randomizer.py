"""A mechanism that reports one bit of a code word and its place: Hadamard randomized response.

Sources: the survey of Wang et al. (Sensors 20, 2020), equations (46) and (47), after Nguyen et al. (2016) and Apple
(2017). Binary local hashing (equations (40) to (42); Wang et al., USENIX Security 2017, section 4.4) with linear hash
functions is the same mechanism: a row of the Hadamard matrix is a linear function of the bits of the symbol.
"""

import math

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.kernels.block_designs import walsh_hadamard
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.randomizers.fold import FoldedMechanism
from uldp.schemas.arrays import Floats, Symbols, Values


class HadamardResponse(FoldedMechanism):
    """Hadamard randomized response, HRR; also binary local hashing, BLH, with a linear hash function.

    Let K be the least power of two with K >= |Z|. The Hadamard matrix has in row j and column z the entry -1 to the
    number of ones that the numbers j and z share in binary. The device draws a row j, uniform and independent of its
    symbol z. It reports j, and the bit b that is 1 where the entry of its symbol is -1, or with the probability of
    noise 1/(E+1), E = e^epsilon, the other bit. A report supports the symbols whose entry in row j fits the bit, with

        p = E/(E+1)    for z,    q = 1/2    for any other symbol,

    because two columns agree in half of the rows. Given z, the supports of two symbols are independent. The variance
    of an estimate is 1.06, 1.27, 2.4 and 14 times that of OLH at epsilon 1/2, 1, 2 and 4.

    Guarantee: one report is epsilon-LDP. Whatever the row, the likelihoods of a bit under two symbols differ by at most
    the factor E. The row says nothing about the symbol.

    A payload is the symbol 2 j + b.
    """

    answers = 2

    def __init__(self, size: int, epsilon: float) -> None:
        """Build the mechanism over |Z| = ``size`` symbols; ValueError if size or epsilon is not positive."""
        super().__init__(size, epsilon)
        self.rows = self.numbers = 1 << (size - 1).bit_length()
        self._of_payloads(2 * self.rows)
        self.chance_support = 1 / 2
        self.noise_probability = 1 / (2 + math.expm1(epsilon))
        self.channel = Channel(np.full(size, 1 - self.noise_probability), np.full(size, 1 / 2), independent_bits=True)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        rows = randomness.integers(0, self.rows, len(symbols))
        noisy = randomness.random(len(symbols)) < self.noise_probability
        bits = (np.bitwise_count(rows & symbols) & 1).astype(np.int64) ^ noisy
        payloads: npt.NDArray[np.uint32] = (2 * rows + bits).astype(np.uint32)
        return payloads

    def device_form(self) -> DeviceForm:
        return {"form": "row", "rows": self.rows, "noise": threshold(self.noise_probability)}

    @property
    def payload_text(self) -> str:
        return f"a row of {self.rows:,} and a bit: {self.statistic_size:,} payloads"

    def parts_of(self, payload: int) -> str:
        return f"row {payload // 2:,} of {self.rows:,}, bit {payload % 2}"

    def symbols_of(self, payload: int) -> Symbols:
        bits = np.bitwise_count(np.arange(self.size) & payload >> 1) & 1
        return np.flatnonzero(bits == payload & 1)

    def supports(self, cells: Floats) -> Floats:
        bits = cells.reshape(self.rows, 2, -1)
        sums: Floats = (bits.sum(axis=(0, 1)) + walsh_hadamard(bits[:, 0] - bits[:, 1])[: self.size]) / 2
        return sums

    def supported(self, symbols: Floats) -> Floats:
        signed = walsh_hadamard(np.pad(symbols, ((0, self.rows - self.size), (0, 0))))
        sums = symbols.sum(axis=0)
        return np.stack([sums + signed, sums - signed], axis=1).reshape(2 * self.rows, -1) / 2
