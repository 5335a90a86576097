"""Optimized local hashing with a fixed number of hash functions, the cohorts: for strings that nobody lists.

Sources: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.4, for local hashing; Kairouz, Bonawitz & Ramage, "Discrete Distribution Estimation under Local Privacy" (ICML
2016), for cohorts with randomized response (O-RR), equation (33) of the survey of Wang et al. (Sensors 20, 2020).
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.inference.goodness_of_fit import Check, chi_square
from uldp.mechanisms.protocol.device_form import DeviceForm, threshold
from uldp.mechanisms.protocol.mechanism import Guarantee, Privacy, Randomness
from uldp.mechanisms.randomizers.reports import UniformReports
from uldp.mechanisms.strings.cohorts import STRING_SYMBOLS, hash_positions
from uldp.mechanisms.strings.string_mechanism import CohortMechanism
from uldp.schemas.arrays import Counts, Mask, Payloads, Symbols, Values


class CohortHashing(CohortMechanism, UniformReports):
    """Randomized response on a hash of the string, with the hash function of a cohort that the device draws.

    With M cohorts, g buckets and E = e^epsilon, the device draws a cohort c, uniform and independent of its string. It
    hashes the string into one of g buckets with the function of this cohort. It reports the cohort and

        the bucket of the string     with probability p = E/(E+g-1)
        any other bucket, each       with probability q = 1/(E+g-1)

    Guarantee: one report is epsilon-LDP for every user and every two strings, whatever the cohort is. The cohort is
    public; it says nothing about the string, because it is drawn independently of it.
    """

    def __init__(self, epsilon: float, buckets: int, cohorts: int) -> None:
        """Build the mechanism; ValueError if epsilon is not positive, or there are fewer than 2 buckets or 1 cohort."""
        if buckets < 2 or cohorts < 1:
            raise ValueError(f"hashing needs 2 buckets and 1 cohort or more, got {buckets} and {cohorts}")
        self._of_cohorts(cohorts, buckets)
        self.size, self.answers = STRING_SYMBOLS, buckets
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self.noise_probability = (buckets - 1) / (buckets + math.expm1(epsilon))
        self._p, self._q = 1 - self.noise_probability, self.noise_probability / (buckets - 1)

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        self.check_symbols(symbols)
        n = len(symbols)
        cohorts = randomness.integers(0, self.cohorts, n)
        noisy = randomness.random(n) < self.noise_probability
        shifts = randomness.integers(1, self.buckets, n)
        own = hash_positions(cohorts, symbols, 1, self.buckets)[:, 0]
        return (cohorts * self.buckets + (own + noisy * shifts) % self.buckets).astype(np.uint32)

    def device_form(self) -> DeviceForm:
        return {
            "form": "cohort",
            "cohorts": self.cohorts,
            "buckets": self.buckets,
            "noise": threshold(self.noise_probability),
        }

    def positions_supported(self, symbol: int | Symbols, payloads: Payloads) -> Counts:
        cohorts, buckets = np.divmod(payloads.astype(np.int64), self.buckets)
        own: Mask = hash_positions(cohorts, np.array(symbol), 1, self.buckets)[:, 0] == buckets
        return own.astype(np.int64)

    def string_checks(self, symbol: int | Symbols, payloads: Payloads) -> Iterator[Check]:
        """Test the buckets, each less that of the string modulo g, by Pearson's chi-square; see the base class."""
        cohorts, buckets = np.divmod(payloads.astype(np.int64), self.buckets)
        yield self.check_of_cohorts(cohorts)
        own = hash_positions(cohorts, np.array(symbol), 1, self.buckets)[:, 0]
        law = np.full(self.buckets, self._q)
        law[0] = self._p
        counts = np.bincount((buckets - own) % self.buckets, minlength=self.buckets)
        yield chi_square("buckets, less that of the string", "bucket", counts, law)
