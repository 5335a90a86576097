"""A collection spec with what the stages need of it worked out."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np

from uldp.mechanisms.catalog import build_mechanism
from uldp.mechanisms.mechanism import Mechanism
from uldp.mechanisms.pum import Pum
from uldp.mechanisms.unary_encoding import UnaryEncoding
from uldp.schemas.arrays import Mask, Payloads, Times
from uldp.schemas.collection import CollectionKey, CollectionSpec
from uldp.schemas.durations import milliseconds

#: For how long after its closing late reports still amend a window's accounting.
AMENDABLE_FOR = timedelta(days=1)

#: In milliseconds since 1970: event times end before it.
YEAR_10000 = 253_402_300_800_000

#: A report's number of set bits is improbable if no more than this share of honest reports has one like it.
IMPROBABLE_TAIL = 1e-6


@dataclass(frozen=True, eq=False)
class ServedCollection:
    """A spec with what decoding needs of it worked out."""

    spec: CollectionSpec
    mechanism: Mechanism
    pum: Pum

    @cached_property
    def slice_size(self) -> int:
        """Milliseconds of a time slice; see ``ReportColumns.slices``."""
        return milliseconds(self.spec.window.period or self.spec.window.size)

    @cached_property
    def closes_after(self) -> int:
        """Milliseconds from a slice's start to the closing of the last window that holds it."""
        return milliseconds(self.spec.window.size + self.spec.window.allowed_lateness)

    @cached_property
    def amendable_for(self) -> int:
        """Milliseconds from a slice's start for which the accounting of all windows that hold it can be amended."""
        return self.closes_after + milliseconds(AMENDABLE_FOR)

    @cached_property
    def remembered_for(self) -> int:
        """Milliseconds from a slice's start until no copy of its reports can come into a window that counted them.

        A copy that names another slice of a sliding window can come for as long as that slice is countable.
        """
        return self.closes_after + milliseconds(self.spec.window.size) - self.slice_size

    def event_times(self, published: Times) -> tuple[Times, Times]:
        """Return the earliest and the latest event time, in milliseconds, that reports published then may claim."""
        age, skew = milliseconds(self.spec.max_age), milliseconds(self.spec.limits.max_clock_skew)
        return np.maximum(published - age, 0), np.minimum(published + skew, YEAR_10000 - 1)

    def admits(self, times: Times, published: Times) -> Mask:
        """Say which of one or more reports have an event time that those published then may claim."""
        # Both bounds grow with the time of publication. Most often all times are within the closest ones.
        (earliest, _), (_, latest) = np.transpose(self.event_times(np.array([published.max(), published.min()])))
        if earliest <= times.min() and times.max() <= latest:
            return np.ones(len(times), dtype=np.bool_)
        earliest, latest = self.event_times(published)
        return (times >= earliest) & (times <= latest)

    def slice_start(self, times: Times) -> Times:
        """Start of the time slice that holds each of ``times``."""
        return times // self.slice_size * self.slice_size

    def last_of_slice(self, start: int) -> int:
        """Last millisecond of a slice: the element time of whatever belongs to it."""
        return start + self.slice_size - 1

    @cached_property
    def _plausible_bits(self) -> tuple[int, int]:
        # Here, because SciPy takes a quarter of a second to import, and a simulation needs this class too.
        from uldp.mechanisms.plausibility import plausible_bit_totals

        assert isinstance(self.mechanism, UnaryEncoding)
        return plausible_bit_totals(self.mechanism, IMPROBABLE_TAIL)

    def inspect(self, payloads: Payloads) -> tuple[Mask, Mask]:
        """Say which payloads the mechanism can produce, and which have a number of bits that hardly any honest one has.

        Returns:
            Both of shape (n,).
        """
        if not isinstance(self.mechanism, UnaryEncoding):
            return self.mechanism.possible(payloads), np.zeros(len(payloads), dtype=np.bool_)
        possible, totals = self.mechanism.inspect(payloads)
        fewest, most = self._plausible_bits
        return possible, (totals < fewest) | (totals > most)

    @cached_property
    def bits_width(self) -> int | None:
        """Bytes of a bit payload, or None for a symbol."""
        shape = self.mechanism.payload_shape
        return shape[0] if shape else None


def serve(specs: Iterable[CollectionSpec]) -> dict[CollectionKey, ServedCollection]:
    """Index specs by what reports name.

    Raises:
        ValueError: if two specs have the same collection and version, or there is none.
    """
    found: dict[CollectionKey, ServedCollection] = {}
    for spec in specs:
        if spec.key in found:
            raise ValueError(f"two specs for {spec.collection} version {spec.version}; raise the version of one")
        found[spec.key] = ServedCollection(spec, build_mechanism(spec), Pum.from_spec(spec))
    if not found:
        raise ValueError("no collection spec; give at least one")
    return found
