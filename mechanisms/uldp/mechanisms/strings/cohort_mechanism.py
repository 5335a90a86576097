"""What mechanisms have in common whose payload is a bucket of a cohort."""

from collections.abc import Sequence

import numpy as np

from uldp.mechanisms.protocol.cells import Cells, count_symbols
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.schemas.arrays import Mask, Payloads, Symbols


class CohortMechanism(StringMechanism):
    """A mechanism over strings whose payload is the symbol c g + y: the bucket y of the cohort c.

    The cells count the payloads, so their number does not depend on the strings, and the collector may ask about any
    string later.

    Attributes:
        buckets: g, the number of buckets of a cohort.
    """

    partitions = True
    counts_payloads = True
    buckets: int

    def possible(self, payloads: Payloads) -> Mask:
        """Return which payloads name a cohort and a bucket."""
        return payloads < self.statistic_size

    def describe(self, payload: int | bytes) -> str:
        """Return the cohort and the bucket."""
        assert isinstance(payload, int)
        cohort, bucket = divmod(payload, self.buckets)
        return f"cohort {cohort:,} of {self.cohorts:,}, bucket {bucket} of {self.buckets}"

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> list[Cells]:
        """Count the payloads of each group."""
        return count_symbols(np.concatenate(parts), groups, k, self.statistic_size)
