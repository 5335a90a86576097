"""One mechanism whose reports name a slice openly: its strata, which the public attributes of a report choose.

Guarantee: that of the mechanism, between any two values of a user in one slice. The slice itself is public and not
protected: it must not depend on what the device holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from uldp.mechanisms.encodings.strata_encoding import Choice, StrataEncoding, StratumSource
from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism, Randomness
from uldp.mechanisms.randomizers.strata import MemoizedStrata, Strata
from uldp.mechanisms.slices.sliced_decoder import SlicedDecoder
from uldp.schemas.arrays import Floats, Payloads, Symbols, Values
from uldp.schemas.specs.slices import Slices, slice_text


@dataclass(frozen=True)
class Named(Choice):
    """The public attributes of a report name its part: each has a column, of positions among its values."""

    columns: tuple[int, ...] = ()
    slices: Slices = field(default_factory=lambda: Slices({}))

    def parts(self, columns: Sequence[Held], strata: Strata, randomness: Randomness) -> Symbols:
        return self._numbers(columns)

    def law(self, columns: Sequence[Held], strata: Strata) -> Floats:
        law = np.zeros(len(strata.parts))
        law[self._numbers(columns)] = 1.0
        return law

    def device_form(self) -> DeviceForm:
        return {"form": "named", "by": {name: list(values) for name, values in self.slices.values.items()}}

    def _numbers(self, columns: Sequence[Held]) -> Symbols:
        numbers: Symbols = np.zeros(len(columns[0].values), dtype=np.int64)
        for number, size in zip(self.columns, self.slices.sizes, strict=True):
            numbers = numbers * size + np.asarray(columns[number].values, dtype=np.int64)
        return numbers


class SlicedStrata(Strata):
    """Strata whose parts are the slices of one mechanism."""

    def __init__(self, mechanism: Mechanism, slices: Slices) -> None:
        count = len(slices)
        super().__init__([mechanism] * count, [1 / count] * count, "slice")
        self.slices = slices
        public = (
            f"a report names its {' and '.join(slices.values)} openly: nothing protects them, and they must not depend"
            " on the value; the promise is about two values of users in one slice"
        )
        self.guarantee = replace(self.guarantee, public=public)

    def name_of(self, number: int) -> str:
        return slice_text(self.slices.names[number])


class MemoizedSlices(SlicedStrata, MemoizedStrata):
    """Slices whose devices keep one response for all slices: a device that changes its spends no more."""

    def kept_under(self, symbols: Values) -> Values:
        """See the base class: the symbols of the mechanism, whatever the slice."""
        return symbols % self.parts[0].size

    def renamed(self, permanent: Payloads, symbols: Values) -> Payloads:
        slices = self.parts_of(symbols)
        renamed = permanent.copy()
        for _, rows, own in self.split_payloads(permanent):
            for number in np.unique(slices[rows]).tolist():
                mine = slices[rows] == number
                renamed[rows[mine]] = self._wrap(number, own[mine])
        return renamed


def sliced(protocol: LdpProtocol, slices: Slices, columns: int) -> LdpProtocol:
    """Return a protocol whose reports name a slice, by columns behind those that the encoding reads."""
    kind = MemoizedSlices if protocol.mechanism.memory else SlicedStrata
    strata = kind(protocol.mechanism, slices)
    source = StratumSource(protocol.encoding, tuple(range(columns)))
    choice = Named(tuple(range(columns, columns + len(slices.sizes))), slices)
    encoding = StrataEncoding([source] * len(slices), strata, choice)
    return LdpProtocol(encoding, strata, SlicedDecoder(protocol, strata, slices.names), protocol)
