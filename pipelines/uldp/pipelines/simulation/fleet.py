"""A simulated fleet of devices, for tests, demonstrations and sizing: users, report times, and faults in transport."""

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.variable import Variable


@dataclass(frozen=True, eq=False)
class Fleet:
    """Users who each report once, at a uniformly drawn time, to a collector behind a slow and faulty network.

    The network publishes each report after a random delay, so reports arrive in another order than their event times.
    Each report arrives in one of four ways: intact, twice, late or damaged.
    """

    spec: CollectionSpec  # the collection
    truth: Truth  # the distribution of the users' values and tags
    users: int  # the number of users
    #: The seed, with collection, version and ``start_ms``; fleets that differ in one have no report id in common.
    seed: int
    start_ms: int  # the first time at which users report, in milliseconds since 1970-01-01 UTC
    duration_ms: int  # the number of milliseconds in which all users report
    #: The largest number of reports in a message, if a gateway batches them; None for one report per message.
    batch_size: int | None = None
    duplicates: float = 0.0  # share of reports that are published twice, with the same id
    #: Share of reports that the network holds back until their windows are over. It publishes about half of them (none,
    #: if the spec allows no lateness) during the allowed lateness, and the others after it, within the size of a window
    #: or an hour, whichever is shorter.
    late: float = 0.0
    #: Share of reports that arrive damaged, each by one fault, and in its own message if no batch can hold the fault.
    malformed: float = 0.0

    def __post_init__(self) -> None:
        for name, least in {"users": 1, "seed": 0, "start_ms": 0, "duration_ms": 1, "batch_size": 1}.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise RequestError(f"{name} must be {least} or more, got {value}")
        rates = {name: getattr(self, name) for name in ("duplicates", "late", "malformed")}
        if not (min(rates.values()) >= 0 and sum(rates.values()) <= 1):
            raise RequestError(f"rates must be 0 or more and sum to 1 or less, got {rates}")
        if _shapes(self.truth.variables) != _shapes(self.spec.variables):
            raise RequestError("the truth has another domain or other tags than the spec; load it with this spec")


def _shapes(variables: Mapping[str, Variable]) -> dict[str, tuple[int, int]]:
    """Return the number of values and of tags of each variable."""
    return {name: (variable.size, len(variable.tags)) for name, variable in variables.items()}


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of the reports that a fleet has published; the sum of two summaries is again a summary."""

    received: int = 0  # published reports, including second copies and damaged reports
    duplicates: int = 0  # second copies
    late_duplicates: int = 0  # second copies that were published after their windows had closed
    late_within: int = 0  # reports that were held back, and published before their windows had closed
    late_after: int = 0  # sound reports, including copies, that were published after their windows had closed
    malformed: int = 0  # damaged reports

    def __add__(self, other: "Summary") -> "Summary":
        return Summary(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        return (
            f"{self.received:,} reports, including {self.duplicates:,} second copies, {self.malformed:,} damaged, "
            f"{self.late_within:,} late within the allowed lateness and {self.late_after:,} later still"
        )

    @property
    def users(self) -> int:
        """Number of users who have reported."""
        return self.received - self.duplicates

    def accounting(self, *, judge_lateness: bool) -> Accounting:
        """Return the accounting that a collector must reach; a stream judges lateness, a backfill does not."""
        late = self.late_after if judge_lateness else 0
        duplicate = self.duplicates - (self.late_duplicates if judge_lateness else 0)
        counted = self.received - duplicate - late - self.malformed
        return Accounting(self.received, counted, duplicate, late, self.malformed)
