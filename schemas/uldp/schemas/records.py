"""The records of the wire and of the disk as typed values, each with its Avro form.

Times are integers: milliseconds since 1970-01-01 UTC.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np

from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.framing import encode_object


def iso(milliseconds: int) -> str:
    """Write a time as ISO 8601 in UTC, to the second where it is one.

    >>> iso(1767258000000)
    '2026-01-01T09:00:00Z'
    """
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Report:
    """One obfuscated value from one device: a symbol of Z (int) or packed bits (bytes)."""

    collection: str
    version: int
    report_id: bytes
    event_time: int
    payload: int | bytes

    def encode(self) -> bytes:
        """Return the message that a device sends."""
        return encode_object("report", asdict(self))


@dataclass(frozen=True, slots=True)
class ReportBatch:
    """Reports of one collection and version as packed columns; see ``report_batch.avsc`` for their layout."""

    collection: str
    version: int
    report_ids: bytes
    event_times: bytes
    symbols: bytes | None = None
    bits: bytes | None = None

    def encode(self) -> bytes:
        """Return the message that a gateway or shuffler sends.

        Raises:
            ValueError: if not exactly one of ``symbols`` and ``bits`` is given.
        """
        if (self.symbols is None) == (self.bits is None):
            raise ValueError("a batch has either symbols or bits")
        payload = (
            ("uldp.SymbolColumn", {"symbols": self.symbols})
            if self.symbols is not None
            else ("uldp.BitsColumn", {"bits": self.bits})
        )
        return encode_object(
            "report_batch",
            {
                "collection": self.collection,
                "version": self.version,
                "report_ids": self.report_ids,
                "event_times": self.event_times,
                "payload": payload,
            },
        )


#: Ranges of clock skew, each way: below 1 s, then 1 to 2 s, 2 to 4 s and so on; the last begins at 2^22 s, 48 days.
SKEW_RANGES = 24
#: The attribute of a message that was replayed: which attempt this is.
ATTEMPT = "uldp-attempt"
#: The attribute in which a transport may say who sent a message, by a key of its own choice.
SENDER = "uldp-sender"
#: Not a read-only view, which cannot be pickled where a user's own steps pass messages on.
NO_ATTRIBUTES: Mapping[str, str] = {}


class Message(NamedTuple):
    """One message as a stream holds it. A tuple, because streams make a million of them a second.

    Attributes:
        data: The body, untrusted bytes.
        publish_time: When the stream accepted it, by the stream's clock.
        attributes: What the transport carried beside the body.
        source: Where in the source it stands, for a person and for replay; not part of the message.
    """

    data: bytes
    publish_time: int
    attributes: Mapping[str, str] = NO_ATTRIBUTES
    source: str = ""

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``message.avsc`` describes."""
        return {"data": self.data, "attributes": dict(self.attributes), "publish_time": self.publish_time}


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where reports went. The law: received = counted + duplicate + late + rejected.

    Sums are componentwise, so accountings form a commutative monoid with ``Accounting()`` as its zero.
    """

    received: int = 0
    counted: int = 0
    duplicate: int = 0
    late: int = 0
    rejected: int = 0

    def __add__(self, other: "Accounting") -> "Accounting":
        return Accounting(
            self.received + other.received,
            self.counted + other.counted,
            self.duplicate + other.duplicate,
            self.late + other.late,
            self.rejected + other.rejected,
        )

    def closes(self) -> bool:
        """Say whether the law holds."""
        return self.received == self.counted + self.duplicate + self.late + self.rejected


class PaneKind(StrEnum):
    """Whether a pane fired before, when, or after the watermark passed the window's end."""

    EARLY = "early"
    ON_TIME = "on_time"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Pane:
    """One firing of a window. A higher revision replaces the lower ones."""

    kind: PaneKind
    revision: int


def _equal(one: Any, other: Any) -> bool:
    """Compare records that hold arrays, which a dataclass cannot: equal arrays have one shape and equal elements."""
    if type(other) is not type(one):
        return False
    pairs = [(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)]
    return all(a is b or (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Superseded:
    """The pane that another one replaces: its revision, its n and its support counts."""

    revision: int
    n: int
    counts: Counts = field(hash=False)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)


@dataclass(frozen=True, slots=True)
class Sender:
    """The digest of a sender key, and how many reports came with that key, at the least."""

    digest: str
    reports: int


@dataclass(frozen=True, slots=True)
class Signals:
    """What the reports of a window tell of the devices and senders behind them; see ``support_counts.avsc``.

    Attributes:
        early: Reports by how far their event time was after their publish time: less than 1 s, then in powers of two.
        past: As ``early``, for event times at or before the publish time.
        improbable_reports: Counted reports with an improbable number of set bits.
        busiest_sender: The sender key with the most reports, where keys are known and wanted.
    """

    early: tuple[int, ...] = ()
    past: tuple[int, ...] = ()
    improbable_reports: int = 0
    busiest_sender: Sender | None = None

    def to_avro(self) -> dict[str, Any]:
        """Return the value that the schema describes."""
        return asdict(self) | {"early": list(self.early), "past": list(self.past)}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read back what ``to_avro`` wrote."""
        sender = value["busiest_sender"]
        return cls(
            tuple(value["early"]),
            tuple(value["past"]),
            value["improbable_reports"],
            None if sender is None else Sender(**sender),
        )


@dataclass(frozen=True, slots=True)
class SupportCounts:
    """The sufficient statistic of a window: ``counts[z]`` reports support symbol z of Z, out of ``n``.

    ``flags`` are of the closed set in ``uldp.schemas.flags``.
    """

    collection: str
    version: int
    window_start: int
    window_end: int
    pane: Pane
    counts: Counts = field(hash=False)
    accounting: Accounting
    flags: tuple[str, ...] = ()
    supersedes: Superseded | None = None
    signals: Signals = Signals()

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Collection, version, and the window's start and end: what each pane replaces the one before of."""
        return self.collection, self.version, self.window_start, self.window_end

    @property
    def n(self) -> int:
        """Reports behind the counts."""
        return self.accounting.counted

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``support_counts.avsc`` describes."""
        return {
            "collection": self.collection,
            "version": self.version,
            "window_start": self.window_start,
            "window_end": self.window_end,
            "pane": asdict(self.pane),
            "n": self.n,
            "counts": self.counts.tolist(),
            "accounting": asdict(self.accounting),
            "flags": list(self.flags),
            "supersedes": None
            if self.supersedes is None
            else {
                "revision": self.supersedes.revision,
                "n": self.supersedes.n,
                "counts": self.supersedes.counts.tolist(),
            },
            "signals": self.signals.to_avro(),
        }

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read back what ``to_avro`` wrote."""
        before = value["supersedes"]
        return cls(
            value["collection"],
            value["version"],
            value["window_start"],
            value["window_end"],
            Pane(PaneKind(value["pane"]["kind"]), value["pane"]["revision"]),
            np.array(value["counts"], dtype=np.int64),
            Accounting(**value["accounting"]),
            tuple(value["flags"]),
            before and Superseded(before["revision"], before["n"], np.array(before["counts"], dtype=np.int64)),
            Signals.from_avro(value["signals"]),
        )


@dataclass(frozen=True, slots=True)
class TagMass:
    """Estimated share of users who hide their value behind a tag, and its standard error."""

    mass: float
    stderr: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """The published estimate of one window; see ``estimate.avsc`` for each field."""

    support: SupportCounts
    mechanism: str
    epsilon: float | None
    estimator: str
    distribution: Floats = field(hash=False)
    stderr: Floats = field(hash=False)
    tags: Mapping[str, TagMass] = field(hash=False)
    bound: float

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``estimate.avsc`` describes."""
        return {
            **self.support.to_avro(),
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "estimator": self.estimator,
            "distribution": self.distribution.tolist(),
            "stderr": self.stderr.tolist(),
            "tags": {name: asdict(tag) for name, tag in self.tags.items()},
            "bound": self.bound,
        }

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read back what ``to_avro`` wrote."""
        return cls(
            SupportCounts.from_avro(value),
            value["mechanism"],
            value["epsilon"],
            value["estimator"],
            np.array(value["distribution"], dtype=np.float64),
            np.array(value["stderr"], dtype=np.float64),
            {name: TagMass(**tag) for name, tag in value["tags"].items()},
            value["bound"],
        )


@dataclass(frozen=True, slots=True)
class Rejected:
    """One report that could not be counted; see ``rejected.avsc`` for each field."""

    stage: str
    reason: str
    detail: str
    data: bytes
    attributes: Mapping[str, str]
    publish_time: int
    source: str
    attempt: int
    software: str

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``rejected.avsc`` describes."""
        # Not asdict, which copies deeply and cannot copy a read-only mapping.
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"attributes": dict(self.attributes)}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read back what ``to_avro`` wrote."""
        return cls(**value)
