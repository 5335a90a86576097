"""What mechanisms have in common whose payload is a bucket of a cohort."""

from uldp.mechanisms.randomizers.reports import CountedReports
from uldp.mechanisms.strings.string_mechanism import StringMechanism


class CohortMechanism(StringMechanism, CountedReports):
    """A mechanism over strings whose payload is the symbol c g + y: the bucket y of the cohort c.

    The cells count the payloads, so their number does not depend on the strings, and the collector may ask about any
    string later.

    Attributes:
        buckets: g, the number of buckets of a cohort.
    """

    buckets: int

    def describe(self, payload: int | bytes) -> str:
        """Return the cohort and the bucket."""
        assert isinstance(payload, int)
        cohort, bucket = divmod(payload, self.buckets)
        return f"cohort {cohort:,} of {self.cohorts:,}, bucket {bucket} of {self.buckets}"
