"""Schedules of deliveries to one collection, and the strategy that generates them.

Report ``number`` of a schedule names symbol ``number`` and no other report does, so that a right count is 0 or 1: a 2
is a double count, a missing 1 is a loss. Times are minutes from ``START``.
"""

import math
import struct
from dataclasses import dataclass

from hypothesis import strategies as st

from tests import build
from tests.build import MINUTE, START
from uldp.schemas.framing import HEADER_SIZE
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report, ReportBatch
from uldp.schemas.specs.collection import CollectionSpec

#: Publish times end before it.
END = 300
#: Reports of a schedule. Few, so that copies are many.
NUMBERS = 8

#: The simulation lowers the collector's limit to this, so that a message above it is cheap.
MAX_MESSAGE_BYTES = 5_000

#: Versions that are served. They share the ids of their collection.
VERSIONS = (1, 2)
#: Versions that are not.
REFUSED = {Reason.RETIRED_VERSION: 3, Reason.UNKNOWN_VERSION: 4}


@dataclass(frozen=True)
class Policy:
    """Windows of ``size`` every ``period``, and how old a report may be."""

    size: int
    period: int
    lateness: int
    max_age: int | None = None

    @property
    def closes_after(self) -> int:
        """From the start of a slice of ``period`` to the closing of the last window that holds it."""
        return self.size + self.lateness

    @property
    def remembered(self) -> int:
        """From the start of a slice until no copy of its report can come into a window that has counted it."""
        return self.closes_after + self.size - self.period

    def forgotten_at(self, start: int) -> int:
        """When the id of a report of a slice is forgotten, with those of so many slices that four such sets are live.

        Sets begin at multiples of their length since 1970.
        """
        together = self.period * math.ceil(self.remembered / (4 * self.period))
        since = START // MINUTE
        return math.ceil((since + start) / together) * together - since + self.remembered

    def slice_of(self, at: int) -> int:
        return at // self.period * self.period

    def windows_of(self, start: int) -> range:
        """Starts of the windows that hold the slice that begins at ``start``."""
        return range(start - self.size + self.period, start + self.period, self.period)


POLICIES = (
    Policy(60, 60, 30),
    Policy(60, 60, 0),
    Policy(20, 20, 45),
    Policy(60, 60, 30, max_age=120),
    Policy(60, 20, 20),
)

#: What can be wrong with a message. A report may also be out of its domain, have impossible bits or an invalid time,
#: and be too early or expired without any damage.
MESSAGE_DAMAGES = (
    Reason.NOT_AVRO,
    Reason.REGISTRY_FRAMING,
    Reason.UNKNOWN_SCHEMA,
    Reason.TRUNCATED,
    Reason.MALFORMED,
    Reason.TOO_LARGE,
    Reason.UNKNOWN_COLLECTION,
    Reason.UNKNOWN_VERSION,
    Reason.RETIRED_VERSION,
    Reason.WRONG_PAYLOAD,
    Reason.WRONG_LENGTH,
)


@dataclass(frozen=True)
class Row:
    """A copy of a report, as it says when it was made. A copy may say another time than the first."""

    number: int
    at: int
    damage: Reason | None = None


@dataclass(frozen=True)
class Delivery:
    """A message: one report, or with ``batched`` any number of them."""

    published: int
    rows: tuple[Row, ...]
    batched: bool = False
    version: int = 1
    damage: Reason | None = None

    @property
    def version_named(self) -> int:
        """The version that the message names: another one, if that is its damage."""
        return self.version if self.damage is None else REFUSED.get(self.damage, self.version)


@dataclass(frozen=True)
class Schedule:
    """What one collection receives. ``bits``: whether its mechanism reports bits or a symbol."""

    policy: Policy
    bits: bool
    deliveries: tuple[Delivery, ...]

    def specs(self, collection: str) -> list[CollectionSpec]:
        """The specs of the versions that its deliveries name, with the retired one. They differ in nothing else."""
        policy = self.policy
        base = {
            "collection": collection,
            "domain": {"size": NUMBERS},
            "mechanism": {"name": "uoue", "epsilon": 1.0} if self.bits else {"name": "identity"},
            "sensitive": [0] if self.bits else "all",
            "window": {
                "size": f"{policy.size}m",
                "allowed_lateness": f"{policy.lateness}m",
                "early_every": "10s",
                **({"period": f"{policy.period}m"} if policy.period != policy.size else {}),
            },
            "limits": {} if policy.max_age is None else {"max_age": f"{policy.max_age}m"},
        }
        retired = REFUSED[Reason.RETIRED_VERSION]
        versions = {1} | {delivery.version_named for delivery in self.deliveries} & {*VERSIONS, retired}
        return [build.spec(version=n, retired=n == retired, **base) for n in sorted(versions)]

    def payload(self, row: Row) -> int | bytes:
        """The measurement that no other report has: a symbol, or the one bit that is set."""
        if self.bits:
            return bytes([0b0110_0000 if row.damage is Reason.IMPOSSIBLE_PAYLOAD else 0x80 >> row.number])
        return row.number + NUMBERS * (row.damage is Reason.OUT_OF_DOMAIN)

    def report(self, collection: str, delivery: Delivery, row: Row) -> Report:
        """The report of a row. Its id is the same in every collection: only within one is it a copy."""
        time = -1 - row.number if row.damage is Reason.INVALID_TIME else START + row.at * MINUTE
        payload: int | bytes = self.payload(row)
        if delivery.damage is Reason.WRONG_PAYLOAD:
            payload = 0 if self.bits else b"\x01"
        elif delivery.damage is Reason.WRONG_LENGTH:
            payload = b"\x01\x00"
        elif delivery.damage is Reason.UNKNOWN_COLLECTION:
            collection += "-unknown"
        return Report(collection, delivery.version_named, struct.pack("<QQ", row.number, 7), time, payload)

    def encode(self, collection: str, delivery: Delivery) -> Message:
        """The message of a delivery, damage included."""
        reports = [self.report(collection, delivery, row) for row in delivery.rows]
        data = self._batch(collection, delivery, reports).encode() if delivery.batched else reports[0].encode()
        match delivery.damage:
            case Reason.NOT_AVRO:
                data = b"\x00" + data
            case Reason.REGISTRY_FRAMING:
                data = b"\x00\x00\x00\x00\x07" + data[HEADER_SIZE:]
            case Reason.UNKNOWN_SCHEMA:
                data = data[:2] + bytes(8) + data[10:]
            case Reason.TRUNCATED:
                data = data[:-1]
            case Reason.MALFORMED if not delivery.batched:
                data += b"\x00"
            case Reason.TOO_LARGE:
                data += bytes(MAX_MESSAGE_BYTES)
        return Message(data, START + delivery.published * MINUTE)

    def _batch(self, collection: str, delivery: Delivery, reports: list[Report]) -> ReportBatch:
        # An empty batch names its collection, version and kind of payload all the same.
        named = reports[0] if reports else self.report(collection, delivery, Row(0, 0))
        ids = b"".join(report.report_id for report in reports)
        if delivery.damage is Reason.MALFORMED:
            ids += b"\x00"
        times = b"".join(struct.pack("<q", report.event_time) for report in reports)
        if isinstance(named.payload, bytes):
            bits = b"".join(report.payload for report in reports if isinstance(report.payload, bytes))
            return ReportBatch(named.collection, named.version, ids, times, bits=bits)
        symbols = struct.pack(f"<{len(reports)}I", *(report.payload for report in reports))
        return ReportBatch(named.collection, named.version, ids, times, symbols=symbols)


@st.composite
def schedules(draw: st.DrawFn, policy: Policy) -> Schedule:
    """Up to ten deliveries of eight reports, and up to four of them again."""
    bits = draw(st.booleans())
    row_damages = [None] * 12 + [Reason.INVALID_TIME, Reason.IMPOSSIBLE_PAYLOAD if bits else Reason.OUT_OF_DOMAIN]
    damages = [None] * 32 + [reason for reason in MESSAGE_DAMAGES if reason is not Reason.WRONG_LENGTH]
    first = draw(st.integers(0, 17))
    homes = draw(st.lists(st.integers(first, first + 5), min_size=NUMBERS, max_size=NUMBERS))

    def row() -> Row:
        number = draw(st.integers(0, NUMBERS - 1))
        moved = draw(st.sampled_from([0, 0, 0, 0, 0, 60, 20, 19, -1, -60]))
        return Row(number, max(homes[number] * 10 + moved, 0), draw(st.sampled_from(row_damages)))

    def delivery() -> Delivery:
        batched = draw(st.booleans())
        rows = tuple(row() for _ in range(draw(st.integers(0, 5)) if batched else 1))
        delay = draw(st.sampled_from([0, 0, 0, 0, 1, 1, 5, 5, 20, 29, 30, 40, 60, 65, 89, 90, 120, 180, -10, -11]))
        published = min(max((rows[0].at if rows else 0) + delay, 0), END - 1)
        fitting = [*damages, Reason.WRONG_LENGTH] if bits and not batched else damages
        return Delivery(published, rows, batched, draw(st.sampled_from([1, 1, 1, 2])), draw(st.sampled_from(fitting)))

    sent = [delivery() for _ in range(draw(st.integers(1, 10)))]
    for index, delay in draw(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, 15, 60, 150])), max_size=4)):
        again = sent[index % len(sent)]
        published = min(again.published + delay, END - 1)
        sent.append(Delivery(published, again.rows, again.batched, again.version, again.damage))
    return Schedule(policy, bits, tuple(sent))
