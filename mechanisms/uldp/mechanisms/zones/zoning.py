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
from uldp.schemas.arrays import Floats, Symbols, Values
from uldp.schemas.specs.variable import Variable
from uldp.schemas.specs.zones import Zones


class Bot(NamedTuple):
    """A bot of the common mechanism."""

    tag: int
    zone: int | None  # the zone of the tag that it is for; None if it is for the whole tag
    nest: ProjectiveResponse | None  # the answer about the zone that its reports hold; None without one


@dataclass(frozen=True, eq=False)
class Zoning(Encoding):
    """PUM whose tags have zones. Its symbols are the values, and then the zones of each tag; one for a tag without.

    A tag has one bot, or if it has zones without a budget of their own, a bot for each zone.
    """

    pum: Pum
    zones: tuple[Zones | None, ...]  # the zones of each tag; None for a tag without zones
    nests: tuple[ProjectiveResponse | None, ...]  # the answer about the zone of each tag; None for a tag without one

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
    def common(self) -> Pum:
        """The values and bots: the bot of a zone reaches its values, and has the background within it."""
        names: list[str] = []
        background, strength, reach = [], [], []
        for tag, (zones, nest) in enumerate(zip(self.zones, self.nests, strict=True)):
            if zones is None or nest is not None:
                names.append(self.pum.tags[tag])
                background.append(self.pum.background[[tag]])
                strength.append(self.pum.strength[[tag]])
                reach.append(np.ones((1, self.pum.size), dtype=np.bool_))
            else:
                names += self.zone_names(tag)
                reach.append(zones.of_value == np.arange(len(zones.labels))[:, np.newaxis])
                background.append(np.where(reach[-1], self.within(tag), 0.0))
                strength.append(self.strength_within(tag))
        reached = None if all(bot.zone is None for bot in self.bots) else np.vstack(reach)
        return Pum(self.pum.sensitive, tuple(names), np.vstack(background), np.concatenate(strength), reached)

    @cached_property
    def places(self) -> Symbols:
        """Shape (kappa, |X|): the symbol of each value behind each tag."""
        sizes = [1 if zones is None else len(zones.labels) for zones in self.zones]
        first = self.pum.size + np.cumsum([0, *sizes])[:-1]
        own = [np.zeros(self.pum.size, np.int64) if zones is None else zones.of_value for zones in self.zones]
        return first[:, np.newaxis] + np.array(own)

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Values:
        symbols = self.pum.encode(columns, randomness)
        ((values, tags),) = columns
        return np.where(tags >= 0, self.places[np.maximum(tags, 0), values.astype(np.int64)], symbols)

    def device_form(self) -> DeviceForm:
        # A tag without zones has one symbol for all values.
        return {"form": "zones", "size": self.pum.size, "places": self.places.tolist()}

    def within(self, tag: int) -> Floats:
        """Return the assumed share of each value in its zone, (|X|,): background, or uniform without mass."""
        of_value, masses = self.zones_of(tag).of_value, self.masses(tag)
        weights = np.where((masses == 0)[of_value], 1.0, np.nan_to_num(self.pum.background[tag]))
        return weights / np.where(masses == 0, np.bincount(of_value), masses)[of_value]

    def strength_within(self, tag: int) -> Floats:
        """Return the number of draws that ``within`` is worth in each zone, shape (G,).

        A background of strength m is worth m times its mass in a zone. Where it has no mass, the strength is that of a
        flat prior, one for each value. A zone of one value is known exactly. NaN where the strength is unknown.
        """
        sizes, mass = np.bincount(self.zones_of(tag).of_value).astype(np.float64), self.masses(tag)
        strength = np.where(mass > 0, self.pum.strength[tag] * mass, sizes)
        return np.where(sizes == 1, np.inf, strength)

    def masses(self, tag: int) -> Floats:
        """Return the mass of the background in each zone of a tag, shape (G,); 0 without background."""
        of_value, background = self.zones_of(tag).of_value, np.nan_to_num(self.pum.background[tag])
        return np.asarray(np.bincount(of_value, background), dtype=np.float64)

    def zone_names(self, tag: int) -> list[str]:
        """Return a name for each zone of a tag: ``tag/zone``."""
        return [f"{self.pum.tags[tag]}/{label}" for label in self.zones_of(tag).labels]

    def zones_of(self, tag: int) -> Zones:
        """Return the zones of a tag that has some."""
        zones = self.zones[tag]
        assert zones is not None
        return zones


def _nest(zones: Zones | None, epsilon: float | None, report: float | None) -> ProjectiveResponse | None:
    if zones is None or epsilon is None:
        return None
    assert report is not None  # a tag has a budget for zones only where reports have one
    return ProjectiveResponse(len(zones.labels), epsilon, report)
