"""What mechanisms for strings have in common: cohorts of devices, each with hash functions of its own."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.mechanisms.strings.cohort_channel import CohortChannel
from uldp.schemas.arrays import Counts, Payloads, Symbols

if TYPE_CHECKING:
    from uldp.mechanisms.inference.goodness_of_fit import Check


class StringMechanism(Mechanism):
    """A mechanism over strings whose devices draw a cohort."""

    few_symbols = False
    cohorts: int

    @property
    @abstractmethod
    def cohort_channel(self) -> CohortChannel:
        """The probabilities that a report of each cohort supports a position."""

    @abstractmethod
    def string_checks(self, symbol: int | Symbols, payloads: Payloads) -> Iterator["Check"]:
        """Test whether n reports of one string, or of one set of strings, follow the law of the mechanism.

        A cohort hashes the string by functions of its own, so that payloads of many cohorts are too many to count each.
        But relative to the positions of the string, all cohorts have one law. The symbol is that of the string, or
        there are those of the set, shape (l,); the payloads have passed ``possible``.
        """

    @abstractmethod
    def positions_supported(self, symbol: int | Symbols, payloads: Payloads) -> Counts:
        """Return of n reports, at how many positions each supports a string, or any of a set; shape (n,)."""

    def check_of_cohorts(self, cohorts: Symbols) -> "Check":
        """Test whether the cohorts of n reports are uniform."""
        from uldp.mechanisms.inference.goodness_of_fit import chi_square  # needs SciPy, and devices need none

        counts = np.bincount(cohorts, minlength=self.cohorts)
        return chi_square("cohorts", "cohort", counts, np.full(self.cohorts, 1 / self.cohorts))


class CohortMechanism(StringMechanism, CountedReports):
    """A mechanism over strings whose payload is the symbol c g + y: the bucket y of the cohort c.

    The cells count the payloads, so their number does not depend on the strings, and the collector may ask about any
    string later.
    """

    buckets: int  # g, the number of buckets of a cohort
    # The probabilities that a report has a bucket of a string that the device holds, and any other of one string.
    _p: float
    _q: float

    def _of_cohorts(self, cohorts: int, buckets: int) -> None:
        self.cohorts, self.buckets, self.structure = cohorts, buckets, (cohorts, buckets)
        self._of_payloads(cohorts * buckets)

    @property
    def cohort_channel(self) -> CohortChannel:
        return CohortChannel(self.cohorts, self.buckets, 1, self._p, self._q, one_position=True, held=self.held)

    def describe(self, payload: int | bytes) -> str:
        assert isinstance(payload, int)
        cohort, bucket = divmod(payload, self.buckets)
        return f"cohort {cohort:,} of {self.cohorts:,}, bucket {bucket} of {self.buckets}"
