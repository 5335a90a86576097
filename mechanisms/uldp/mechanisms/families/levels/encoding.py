"""Levels of privacy: each user chooses an epsilon, and the reports of all levels give one estimate.

Source: Chen, Li, Qin, Kasiviswanathan & Jin, "Private Spatial Data Aggregation in the Local Setting" (ICDE 2016), for
personalized local differential privacy (PLDP); Wang, Zhang, Feng & Yang, "A Comprehensive Survey on Local Differential
Privacy toward Data Statistics and Analysis" (Sensors 20, 2020), equation (8).

Guarantee: one report is LDP (or ULDP) with the epsilon of the level that its user has chosen. The report names the
level openly. So a user must choose it independently of the values: a device that chooses a stricter level for a
sensitive value tells, by the level, that the value is sensitive. A device therefore has a level, and not a report.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Guarantee, Randomness
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats, Values


@dataclass(frozen=True)
class LevelEncoding(Encoding):
    """Encodes values for the level of each device.

    Attributes:
        values: The encoding of the values, the same at each level.
        strata: The mechanism, with a part for each level.
        names: The name of each level.
        level: The number of the level; None in a simulation, which draws it from the expected shares.
    """

    values: Pum
    strata: Strata
    names: tuple[str, ...]
    level: int | None = None

    def at(self, level: str | None) -> "LevelEncoding":
        """Return the encoding of a device with this level.

        Raises:
            ValueError: if there is no such level.
        """
        if level not in self.names:
            raise ValueError(f"a device needs one of the levels {', '.join(self.names)}")
        return replace(self, level=self.names.index(level))

    @property
    def guarantee(self) -> Guarantee:
        """The promise to the user of a device at its level."""
        return self.strata.guarantee if self.level is None else self.strata.parts[self.level].guarantee

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbol of each device at its level, shape (n,).

        Raises:
            ValueError: if a value is outside of the domain.
        """
        symbols = self.values.encode(columns, randomness)
        level = self.strata.draw(len(symbols), randomness) if self.level is None else self.level
        return symbols + self.strata.first_symbols[level]

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return the distribution of the symbol at each level, times its share; see ``Encoding``."""
        levels = len(self.names)
        shares = self.strata.shares if self.level is None else np.eye(levels)[self.level]
        return np.outer(shares, self.values.law(columns, size // levels)).ravel()
