"""What is promised against those who see only the published tables: a smaller epsilon than that of a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Shuffled:
    """The promise to a user whose report is one of many, where nobody knows which."""

    #: The attribute of a record, or the level, and the slice, whose reports these are; () if a collection has one kind
    #: of report.
    of: tuple[str, ...] = ()
    #: The number of reports in Y_P, those that a protected value can send, less the forged ones that the spec assumes.
    #: Under LDP, all are in Y_P.
    reports: int
    epsilon: float  # the promise about two protected values of the user, in nats; at most the epsilon of the report
    delta: float  # the promise is (epsilon, delta)-differential privacy

    def to_avro(self) -> dict[str, Any]:
        """Return the value that ``estimate.avsc`` describes."""
        return {"of": list(self.of), "reports": self.reports, "epsilon": self.epsilon, "delta": self.delta}

    @classmethod
    def from_avro(cls, value: Mapping[str, Any]) -> Self:
        """Read a value that ``to_avro`` returned."""
        return cls(**{**value, "of": tuple(value["of"])})
