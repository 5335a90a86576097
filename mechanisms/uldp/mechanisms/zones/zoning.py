"""Tags with zones, as an encoding: a device maps a hidden value to the zone of its tag, not only to the tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from uldp.mechanisms.protocol.device_form import DeviceForm
from uldp.mechanisms.protocol.encoding import Encoding, Held
from uldp.mechanisms.protocol.mechanism import Randomness
from uldp.mechanisms.tags.pum import Pum
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.schemas.arrays import Floats, Mask, Symbols, Values
from uldp.schemas.specs.variable import Variable
from uldp.schemas.specs.zones import Zones


class Bot(NamedTuple):
    """A bot of the common mechanism.

    Attributes:
        tag: The position of its tag.
        zone: The zone of the tag that it is for; None if it is for the whole tag.
        nest: The answer about the zone that its reports hold; None without one.
    """

    tag: int
    zone: int | None
    nest: ProjectiveResponse | None


@dataclass(frozen=True, eq=False)
class Zoning(Encoding):
    """PUM whose tags have zones. Its symbols are the values, and then the zones of each tag; one for a tag without.

    A tag has one bot, or if it has zones without a budget of their own, a bot for each zone.

    Attributes:
        pum: The values and tags.
        zones: The zones of each tag; None for a tag without zones.
        nests: The answer about the zone of each tag; None for a tag without one.
    """

    pum: Pum
    zones: tuple[Zones | None, ...]
    nests: tuple[ProjectiveResponse | None, ...]

    @classmethod
    def of(cls, variable: Variable) -> Self:
        """Build the encoding of a variable from its sensitive values, tags and zones."""
        pairs = zip(variable.tags, variable.zones, strict=True)
        nests = tuple(_nest(zones, tag.zone_epsilon, variable.mechanism.epsilon) for tag, zones in pairs)
        return cls(Pum.of(variable), tuple(variable.zones), nests)

    @cached_property
    def bots(self) -> Sequence[Bot]:
        """The bots of the common mechanism; bot b is outer symbol |X| + b."""
        found = []
        for tag, (zones, nest) in enumerate(zip(self.zones, self.nests, strict=True)):
            own = range(len(zones.labels)) if zones is not None and nest is None else [None]
            found += [Bot(tag, zone, nest) for zone in own]
        return found

    @cached_property
    def places(self) -> Symbols:
        """Shape (kappa, |X|): the symbol of each value behind each tag."""
        sizes = [1 if zones is None else len(zones.labels) for zones in self.zones]
        first = self.pum.size + np.cumsum([0, *sizes])[:-1]
        own = [np.zeros(self.pum.size, np.int64) if zones is None else zones.of_value for zones in self.zones]
        return first[:, np.newaxis] + np.array(own)

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        """Return the symbol of each device; draws nothing. See ``Pum.encode``."""
        symbols = self.pum.encode(columns, randomness)
        ((values, tags),) = columns
        return np.where(tags >= 0, self.places[np.maximum(tags, 0), values.astype(np.int64)], symbols)

    def device_form(self) -> DeviceForm:
        """See ``Encoding``."""
        # A tag without zones has one symbol for all values.
        return {"form": "zones", "size": self.pum.size, "places": self.places.tolist()}

    def within(self, tag: int) -> Floats:
        """Return the share of each value among the users of its zone that is assumed, shape (|X|,).

        It is the background within the zone, or the uniform distribution where the background has no mass there.
        """
        zones = self.zones[tag]
        assert zones is not None
        masses, sizes = self.masses(tag), np.bincount(zones.of_value)
        empty = (masses == 0)[zones.of_value]
        weights = np.where(empty, 1.0, np.nan_to_num(self.pum.background[tag]))
        return weights / np.where(masses == 0, sizes, masses)[zones.of_value]

    def strength_within(self, tag: int) -> Floats:
        """Return the number of draws that ``within`` is worth in each zone, shape (G,).

        A background of strength m is worth m times its mass in a zone. Where it has no mass, the strength is that of a
        flat prior, one for each value. A zone of one value is known exactly. NaN where the strength is unknown.
        """
        zones = self.zones[tag]
        assert zones is not None
        sizes, mass = np.bincount(zones.of_value).astype(np.float64), self.masses(tag)
        strength = np.where(mass > 0, self.pum.strength[tag] * mass, sizes)
        return np.where(sizes == 1, np.inf, strength)

    def reach(self, bot: Bot) -> Mask:
        """Return which values the users of a bot may hold, shape (|X|,)."""
        zones = self.zones[bot.tag]
        if zones is None or bot.zone is None:
            return np.ones(self.pum.size, dtype=np.bool_)
        return np.asarray(zones.of_value == bot.zone)

    def masses(self, tag: int) -> Floats:
        """Return the mass of the background in each zone of a tag, shape (G,); 0 without background."""
        zones = self.zones[tag]
        assert zones is not None
        return np.asarray(np.bincount(zones.of_value, np.nan_to_num(self.pum.background[tag])), dtype=np.float64)

    def name(self, bot: Bot) -> str:
        """Return a name for a bot: that of its tag, or ``tag/zone``."""
        tag, zones = self.pum.tags[bot.tag], self.zones[bot.tag]
        return tag if bot.zone is None or zones is None else f"{tag}/{zones.labels[bot.zone]}"

    def zone_names(self, tag: int) -> list[str]:
        """Return a name for each zone of a tag: ``tag/zone``."""
        zones = self.zones[tag]
        assert zones is not None
        return [f"{self.pum.tags[tag]}/{label}" for label in zones.labels]


def _nest(zones: Zones | None, epsilon: float | None, report: float | None) -> ProjectiveResponse | None:
    if zones is None or epsilon is None:
        return None
    assert report is not None  # a tag has a budget for zones only where reports have one
    return ProjectiveResponse(len(zones.labels), epsilon, report)
