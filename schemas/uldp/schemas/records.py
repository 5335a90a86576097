"""Typed values for the records on the wire and on disk, each with its Avro form.

Times are integers: milliseconds since 1970-01-01 UTC.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

import numpy as np

from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.framing import encode_object


def iso(milliseconds: int) -> str:
    """Write a time as ISO 8601 in UTC, with milliseconds only if it is not a whole second.

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


#: Number of ranges of clock skew in each direction: below 1 s, 1 to 2 s, 2 to 4 s and so on. The last range begins at
#: 2^22 s, which is 48 days.
SKEW_RANGES = 24
#: The attribute of a replayed message that holds the number of the attempt.
ATTEMPT = "uldp-attempt"
#: The attribute in which a transport may name the sender of a message, by a key that the transport chooses.
SENDER = "uldp-sender"
#: A plain dict and not a read-only view, because Beam must pickle it if a user's own steps pass messages on.
NO_ATTRIBUTES: Mapping[str, str] = {}


class Message(NamedTuple):
    """One message of a stream. A tuple, because streams create a million of them per second.

    Attributes:
        data: The body, as untrusted bytes.
        publish_time: The time at which the stream accepted the message, by the stream's clock.
        attributes: The metadata that the transport carried beside the body.
        source: The position in the source, for readers and for replay; not part of the message.
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
    """Numbers of reports by outcome, with the law received = counted + duplicate + late + rejected.

    Addition is componentwise, so accountings form a commutative monoid with ``Accounting()`` as its zero.
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
        """Return whether the law holds."""
        return self.received == self.counted + self.duplicate + self.late + self.rejected


class PaneKind(StrEnum):
    """The kind of a pane: it fired before, when, or after the watermark passed the window's end."""

    EARLY = "early"
    ON_TIME = "on_time"
    LATE = "late"


_KINDS = tuple(PaneKind)  # in the order in which they fire


@dataclass(frozen=True, slots=True)
class Pane:
    """One firing of a window. A higher revision replaces the lower ones."""

    kind: PaneKind
    revision: int


def _equal(one: Any, other: Any) -> bool:
    """Compare records with arrays, which dataclasses cannot compare; equal arrays have equal shapes and elements."""
    if type(other) is not type(one):
        return False
    pairs = [(getattr(one, each.name), getattr(other, each.name)) for each in fields(one)]
    return all(a is b or (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b) for a, b in pairs)


@dataclass(frozen=True, slots=True)
class Superseded:
    """A pane that another pane replaces: its revision, its n and its support counts."""

    revision: int
    n: int
    counts: Counts = field(hash=False)

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)


@dataclass(frozen=True, slots=True)
class Sender:
    """The digest of a sender key, and a lower bound of the number of reports with that key."""

    digest: str
    reports: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of a window about the devices and senders of its reports; see ``support_counts.avsc``.

    Attributes:
        early: Number of reports by the time from publish time to event time: below 1 s, then in powers of two.
        past: Number of reports by the time from event time to publish time, in the same ranges, if it is 0 or more.
        improbable_reports: Number of counted reports with an improbable number of set bits.
        busiest_sender: The sender key with the most reports, if keys are known and the spec limits reports per sender.
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
        """Read a value that ``to_avro`` returned."""
        sender = value["busiest_sender"]
        return cls(
            tuple(value["early"]),
            tuple(value["past"]),
            value["improbable_reports"],
            None if sender is None else Sender(**sender),
        )


@dataclass(frozen=True, slots=True)
class SupportCounts:
    """The sufficient statistic of a window: ``counts[z]`` of ``n`` reports support symbol z of Z.

    If n is 0, ``counts`` is a single 0, which NumPy adds to the counts of any other window.

    The ``flags`` come from the closed set in ``uldp.schemas.flags``.
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
        """Collection, version, window start and window end; each pane replaces the earlier panes with the same key."""
        return self.collection, self.version, self.window_start, self.window_end

    @property
    def age(self) -> tuple[int, bool, int, int]:
        """Order the panes of a window: of two, the newer pane has the larger age.

        The newer pane has received more reports. Of equals, a pane without the flag ``incomplete`` is newer, then a
        late pane than an on-time pane than an early pane, then the pane with the higher revision. The number of
        received reports comes first because it never shrinks, while a restarted job starts its revisions at 0 again.
        """
        whole = Flag.INCOMPLETE not in self.flags
        return self.accounting.received, whole, _KINDS.index(self.pane.kind), self.pane.revision

    @property
    def n(self) -> int:
        """Number of counted reports."""
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
        """Read a value that ``to_avro`` returned."""
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
        """Read a value that ``to_avro`` returned."""
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
    """Reports of one message that could not be counted for one reason; see ``rejected.avsc`` for each field."""

    stage: str
    reason: str
    detail: str
    data: bytes
    attributes: Mapping[str, str]
    publish_time: int
    source: str
    attempt: int
    software: str
    reports: int = 1

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``rejected.avsc`` describes."""
        # asdict would copy deeply, and it cannot copy a read-only mapping.
        return {each.name: getattr(self, each.name) for each in fields(self)} | {"attributes": dict(self.attributes)}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned."""
        return cls(**value)


def count_reasons(rejected: Iterable[Rejected]) -> Counter[str]:
    """Return the number of rejected reports by reason."""
    counts: Counter[str] = Counter()
    for record in rejected:
        counts[record.reason] += record.reports
    return counts
