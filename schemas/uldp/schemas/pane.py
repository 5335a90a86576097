"""A pane, that is one firing of a window: its kind, accounting and signals, and the header that its records share."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Self

from uldp.schemas.flags import Flag

#: Number of ranges of clock skew in each direction: below 1 s, 1 to 2 s, 2 to 4 s and so on. The last range begins at
#: 2^22 s, which is 48 days.
SKEW_RANGES = 24


@dataclass(frozen=True, slots=True)
class Accounting:
    """Numbers of reports by outcome, a commutative monoid with received = counted + duplicate + late + rejected."""

    received: int = 0
    counted: int = 0
    duplicate: int = 0
    late: int = 0
    rejected: int = 0
    #: Number of messages that existed, and that were lost before they could be read, while the window was open; see
    #: ``Missing``. Windows that were open at the same time all have them, so a sum over windows is too high.
    missing: int = 0

    def __add__(self, other: "Accounting") -> "Accounting":
        return Accounting(*(getattr(self, name) + getattr(other, name) for name in OUTCOMES))

    def to_avro(self) -> dict[str, int]:
        """Return the value that the schemas describe."""
        return {name: getattr(self, name) for name in OUTCOMES}

    @property
    def existed(self) -> int:
        """Number of reports that are accounted for, received or missing."""
        return self.received + self.missing

    def closes(self) -> bool:
        """Return whether the law holds; it is about what was received, so ``missing`` is no part of it."""
        return self.received == self.counted + self.duplicate + self.late + self.rejected


#: The names of the numbers of ``Accounting``.
OUTCOMES = tuple(each.name for each in fields(Accounting))


class PaneKind(StrEnum):
    """The kind of a pane: it fired before, when, or after the watermark passed the window's end."""

    EARLY = "early"
    ON_TIME = "on_time"
    LATE = "late"


#: The flags of a pane whose cells are not for readers of results.
_APART = {Flag.FEW_REPORTS, Flag.FEW_OF_VARIABLE, Flag.FEW_MORE, Flag.FEW_AT_ENDS}
_KINDS = tuple(PaneKind)  # in the order in which they fire


@dataclass(frozen=True, slots=True)
class Pane:
    """One firing of a window. A higher revision replaces the lower ones."""

    kind: PaneKind
    revision: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """A pane that another pane replaces: its revision and its n."""

    revision: int
    n: int


@dataclass(frozen=True, slots=True)
class Sender:
    """The digest of a sender key, and a lower bound of the number of reports with that key."""

    digest: str
    reports: int


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of a window about the devices and senders of its reports; see ``statistic.avsc``."""

    #: Number of reports by the time from publish time to event time: below 1 s, then in powers of two.
    early: tuple[int, ...] = ()
    #: Number of reports by the time from event time to publish time, in the same ranges, if it is 0 or more.
    past: tuple[int, ...] = ()
    improbable_reports: int = 0  # number of counted reports with an improbable payload
    #: The sender key with the most reports, if keys are known and the spec limits reports per sender.
    busiest_sender: Sender | None = None

    def to_avro(self) -> dict[str, Any]:
        """Return the value that the schema describes."""
        sender = self.busiest_sender
        return {
            "early": list(self.early),
            "past": list(self.past),
            "improbable_reports": self.improbable_reports,
            "busiest_sender": None if sender is None else asdict(sender),
        }

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned."""
        sender = value["busiest_sender"]
        early, past = tuple(value["early"]), tuple(value["past"])
        return cls(early, past, value["improbable_reports"], None if sender is None else Sender(**sender))


@dataclass(frozen=True, slots=True)
class PaneHeader:
    """The fields that all records of a pane share; ``statistic.avsc`` and ``estimate.avsc`` begin with them.

    The ``flags`` come from the closed set in ``uldp.schemas.flags``. The ``device_digest`` is that
    of the spec: statistics with different digests must not be added.
    """

    collection: str
    version: int
    device_digest: str
    window_start: int
    window_end: int
    pane: Pane
    accounting: Accounting
    flags: tuple[str, ...] = ()
    supersedes: Superseded | None = None
    signals: Signals = Signals()

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Collection, version, window start and window end; each pane replaces the earlier panes with the same key."""
        return self.collection, self.version, self.window_start, self.window_end

    @property
    def age(self) -> tuple[int, bool, int, int]:
        """Order the panes of a window: of two, the newer pane has the larger age.

        The newer pane accounts for more reports, received or missing. Of equals, a pane without the flag
        ``incomplete`` is newer, then a late pane than an on-time pane than an early pane, then the pane with the higher
        revision. The number of reports comes first because it never shrinks, while a restarted job starts its revisions
        at 0 again.
        """
        whole = Flag.INCOMPLETE not in self.flags
        return self.accounting.existed, whole, _KINDS.index(self.pane.kind), self.pane.revision

    @property
    def age_text(self) -> str:
        """The age as text, in hexadecimal digits: texts sort as ages do."""
        return "/".join(f"{part:x}".zfill(width) for part, width in zip(self.age, (16, 1, 1, 8), strict=True))

    @property
    def n(self) -> int:
        """Number of counted reports."""
        return self.accounting.counted

    @property
    def apart(self) -> bool:
        """Whether its cells, or how they differ from those of another pane, are of too few reports to publish."""
        return self.n > 0 and not _APART.isdisjoint(self.flags)

    def header(self) -> dict[str, Any]:
        """Return the fields of the header by name, for another record of the same pane."""
        return {each.name: getattr(self, each.name) for each in fields(PaneHeader)}

    def to_avro(self) -> dict[str, Any]:
        """Return the fields of the header as the schemas of these records describe them."""
        return PaneHeader.header(self) | {
            "pane": asdict(self.pane),
            "n": self.n,
            "accounting": self.accounting.to_avro(),
            "flags": list(self.flags),
            "supersedes": None if self.supersedes is None else asdict(self.supersedes),
            "signals": self.signals.to_avro(),
        }

    @staticmethod
    def header_from_avro(value: Mapping[str, Any]) -> dict[str, Any]:
        """Read the fields of the header, by name, from the value of a whole record."""
        before = value["supersedes"]
        return {each.name: value[each.name] for each in fields(PaneHeader)} | {
            "pane": Pane(PaneKind(value["pane"]["kind"]), value["pane"]["revision"]),
            "accounting": Accounting(**value["accounting"]),
            "flags": tuple(value["flags"]),
            "supersedes": None if before is None else Superseded(**before),
            "signals": Signals.from_avro(value["signals"]),
        }
