"""Optimized local hashing with a fixed number of hash functions, the cohorts: for strings, and sets, that nobody lists.

Sources: Wang et al., "Locally Differentially Private Protocols for Frequency Estimation" (USENIX Security 2017),
section 4.4, for local hashing; Kairouz, Bonawitz & Ramage, "Discrete Distribution Estimation under Local Privacy" (ICML
2016), for cohorts with randomized response (O-RR), equation (33) of the survey of Wang et al. (Sensors 20, 2020). For
sets of any size and with collisions in them, Wang et al., "Differentially Private Numerical Vector Analyses in the
Local and Shuffle Model" (arXiv 2304.04410); cohorts in place of hash functions of each report's own are ours.
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.families.sets.randomizer import DRAWS
from uldp.mechanisms.inference.goodness_of_fit import Check, chi_square
from uldp.mechanisms.kernels.hashing import MOST_BUCKETS, hash_symbols
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


class CohortSetHashing(CohortMechanism):
    """Hashing of up to l strings with the hash function of a cohort that the device draws.

    With M cohorts, t buckets, E = e^epsilon and O = lE + t - l, the device draws a cohort, uniform and independent of
    what it holds, and hashes its strings into t buckets with the function of this cohort. If they hit d different
    buckets, it reports the cohort and

        each bucket that is hit      with probability p = E/O
        any other bucket, each       with probability r_d = (1 - dp)/(t - d), from r_l = 1/O to r_0 = 1/t

    For that, it draws a bucket that is hit with W_d = (t-l)(E-1)/(O(t-d)) each, and else a uniform one of all t. Its
    draws are the same for each set. Symbols from ``STRING_SYMBOLS`` on are of no string, and hit nothing.

    A string that a device does not hold is hashed independently of all else, so over all hash functions its bucket is
    reported with 1/t, whatever d is.

    Guarantee: one report is epsilon-LDP for every user and every two sets, of any sizes, whatever the cohort is: the
    probability of a bucket is from 1/O to E/O. W_d is rounded down to a multiple of 2^-53; see ``SetHashing``.
    """

    def __init__(self, epsilon: float, held: int, buckets: int, cohorts: int) -> None:
        if not 1 <= held < buckets <= MOST_BUCKETS or cohorts < 1:
            raise ValueError(
                f"hashing of 1 string or more has more buckets, up to {MOST_BUCKETS}, and 1 cohort or more, got"
                f" {held}, {buckets} and {cohorts}"
            )
        self.guarantee = Guarantee(Privacy.LDP, epsilon)
        self._of_cohorts(cohorts, buckets)
        self.held, self.size = held, STRING_SYMBOLS + held
        # With E^-1 in place of E nothing overflows.
        rest = math.exp(-epsilon)
        self._p = 1 / (held + (buckets - held) * rest)
        self._q = (1 - self._p) / (buckets - 1)
        others = [(buckets - held) / (buckets - hit) for hit in range(1, held + 1)]
        self.hits = [math.floor(DRAWS * self._p * -math.expm1(-epsilon) * each) for each in others]

    @property
    def repeat_probability(self) -> float:
        """See ``Mechanism``: that of two devices which hit the same l buckets of each cohort."""
        other = (1 - self.held * self._p) / (self.buckets - self.held)
        return (self.held * self._p**2 + (self.buckets - self.held) * other**2) / self.cohorts

    @property
    def largest_probability(self) -> float:
        return self._p / self.cohorts

    def perturb(self, symbols: Values, randomness: Randomness) -> npt.NDArray[np.uint32]:
        symbols = self.held_symbols(symbols, self.held)
        n = len(symbols)
        cohorts = randomness.integers(0, self.cohorts, n)
        kinds, buckets = randomness.integers(0, DRAWS, n), randomness.integers(0, self.buckets, n)
        hit, sizes = self._hit(cohorts, symbols)
        # Which of the hit buckets; one that is not there for a uniform one. A device that hits nothing has no weight.
        weights = np.array([0, *self.hits])[sizes]
        chosen = (kinds[:, np.newaxis] >= weights[:, np.newaxis] * np.arange(1, self.held + 1)).sum(axis=1)
        of_hit = hit[np.arange(n), np.minimum(chosen, self.held - 1)]
        return (cohorts * self.buckets + np.where(chosen < sizes, of_hit, buckets)).astype(np.uint32)

    def _hit(self, cohorts: Values, symbols: Values) -> tuple[Symbols, Counts]:
        """Return the buckets that are hit, ascending with t behind them, and how many; shapes (n, l) and (n,)."""
        found = hash_symbols(cohorts[:, np.newaxis], symbols, self.buckets)
        found = np.sort(np.where(symbols < STRING_SYMBOLS, found, self.buckets), axis=1)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = self.buckets
        return np.sort(found, axis=1), (found < self.buckets).sum(axis=1)

    def device_form(self) -> DeviceForm:
        return {
            "form": "cohorts",
            "cohorts": self.cohorts,
            "buckets": self.buckets,
            "held": self.held,
            "hits": self.hits,
        }

    def positions_supported(self, symbol: int | Symbols, payloads: Payloads) -> Counts:
        cohorts, buckets = np.divmod(payloads.astype(np.int64), self.buckets)
        hit, _ = self._hit(cohorts, np.atleast_2d(symbol))
        return np.asarray((hit == buckets[:, np.newaxis]).sum(axis=1), dtype=np.int64)

    def string_checks(self, symbol: int | Symbols, payloads: Payloads) -> Iterator[Check]:
        """Test the buckets of reports of each number of hit ones by Pearson's chi-square; see the base class."""
        cohorts, buckets = np.divmod(payloads.astype(np.int64), self.buckets)
        yield self.check_of_cohorts(cohorts)
        hit, sizes = self._hit(cohorts, np.atleast_2d(symbol))
        # The hit buckets come first, in ascending order, and then the others.
        before = (hit < buckets[:, np.newaxis]).sum(axis=1)
        places = np.where((hit == buckets[:, np.newaxis]).any(axis=1), before, buckets + sizes - before)
        for size in np.unique(sizes).tolist():
            counts = np.bincount(places[sizes == size], minlength=self.buckets)
            law = np.full(self.buckets, (1 - size * self._p) / (self.buckets - size))
            law[:size] = self._p
            yield chi_square(f"buckets, where the strings hit {size}", "place", counts, law)
