"""One thing that a device holds: the only one of a collection, or an attribute of a record."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

import numpy as np

from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.candidates import Discover
from uldp.schemas.specs.domains import Attribute, Tag, VariableDomain
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.kinds import KINDS, Ends, Kind, Range, Value, holds
from uldp.schemas.specs.mechanism_family import MechanismFamily, MisfitError, names_where
from uldp.schemas.specs.mistakes import prefixed, printable
from uldp.schemas.specs.specfile import SpecFolder
from uldp.schemas.specs.values import Sensitive, Values
from uldp.schemas.specs.zones import Zones, read_zones

if TYPE_CHECKING:
    from uldp.schemas.specs.collection import CollectionSpec

#: A collector has a table of the values behind each zone that has a bot of its own; it has at most so many entries.
_MOST_PLACES = 1 << 24


AnyKind = TypeVar("AnyKind", bound=Kind)


@dataclass(frozen=True, eq=False)
class Variable(Values):
    """A domain with the mechanism for its values, its number or its strings.

    Attributes:
        kind: The domain, an object of its kind.
        mechanism: The mechanism, with the epsilon of the collection, and values by their indices.
        share: The share of the reports about this variable; 1 if it is the only one.
        tags: The tags behind which users hide its values.
        sensitive_mask: Shape (|X|,): whether each value is in X_S.
        background: Shape (kappa, |X|): the distribution pi-hat_k of each tag; a row of NaN without background.
        strength: Shape (kappa,): the number of draws that each background is worth; NaN if unknown.
        zones: The zones of each tag; None for a tag without zones.
        simultaneous: Whether all intervals of a table of its shares are to hold at once.
        candidates: The strings whose shares are asked for; empty for other domains.
        ranges: The ranges whose shares are asked for.
        discover: How many further strings are looked for.
    """

    kind: Kind
    mechanism: MechanismFamily
    share: float
    tags: Sequence[Tag]
    sensitive_mask: Mask
    background: Floats
    strength: Floats
    zones: Sequence[Zones | None]
    simultaneous: bool
    candidates: Sequence[str] = ()
    ranges: Sequence[Range] = ()
    discover: Discover = field(default_factory=Discover)

    @cached_property
    def parameters(self) -> MechanismFamily:
        """The mechanism with numbers in place of auto, as devices know it; these follow from Z."""
        if not self.kind.listed:
            return self.mechanism.of_domain(self.kind)
        pairs = zip(self.tags, self.zones, strict=True)
        bots = sum(1 if zones is None or tag.zone_epsilon is not None else len(zones.labels) for tag, zones in pairs)
        return self.mechanism.resolved(int(self.sensitive_mask.sum()) + bots, self.size + bots)

    def read(self, text: str) -> Value:
        """Return what a table holds about a device; ValueError if it is not in the domain."""
        return self.kind.read(text)

    @property
    def estimators(self) -> tuple[EstimatorName, ...]:
        """The estimators of its mechanism for this domain; the first is the default."""
        return self.mechanism.estimators_of(self.kind)

    def of_kind(self, kind: type[AnyKind]) -> AnyKind:
        """Return the domain, which the spec has found to be of the mechanism's kind; TypeError if it is of another."""
        if not isinstance(self.kind, kind):
            raise TypeError(f"the domain holds {self.kind.holds}, not {kind.holds}")
        return self.kind


def read_variable(
    domain: VariableDomain,
    asked: "Attribute | CollectionSpec",
    mechanism: MechanismFamily,
    folder: SpecFolder,
    *,
    attribute: str = "",
    share: float = 1.0,
    simultaneous: bool = False,
) -> Variable:
    """Read a variable and its files; ValueError, which begins with the key, if they are wrong or do not fit.

    What is asked about it is in the keys of its attribute of a record, or else in those of the spec.
    """
    keys = _Keys.of_attribute(attribute) if attribute else _Keys()
    sensitive, tags, discover = asked.sensitive, asked.tags, asked.discover
    _check_kind(domain, sensitive, tags, mechanism, keys)
    with prefixed(f"{keys.of_domain}."):
        kind = domain.read(folder)
    with prefixed(keys.beside):
        most = mechanism.most_candidates
        candidates = kind.candidates(asked.candidates, asked.candidates_file, most, folder)
        bins = read_ranges(kind, mechanism, asked.ranges)
    if discover is not None and not mechanism.discovers:
        raise ValueError(
            f"{keys.beside}discover: {mechanism.name} finds no strings; remove it, or choose"
            f" {names_where(lambda family: family.discovers)}"
        )
    own = mechanism.obfuscates
    _check_sensitive(own, sensitive, tags, keys.where)
    values = kind.values
    with prefixed(f"{keys.beside}sensitive: "):
        mask = values.mask(sensitive)
    try:
        mechanism = mechanism.fitted(values, mask, tags)
    except MisfitError as error:
        raise ValueError(f"{keys.of(error.key)}: {error.text}") from error
    if values.size > own.largest_size:
        reason, other = own.large_domains
        raise ValueError(
            f"{keys.of_domain}: {own.name} {reason}, so it takes at most {own.largest_size:,} values, got"
            f" {values.size:,}; {f'use {other}, or merge values' if other else 'merge values'}"
        )
    background, strength = _read_backgrounds(values, mask, tags, folder, f"{keys.beside}tags")
    zones = _read_zones(values, tags, folder, f"{keys.beside}tags")
    variable = Variable(
        values.size,
        values.names,
        kind,
        mechanism,
        share,
        tags,
        mask,
        background,
        strength,
        zones,
        simultaneous,
        candidates,
        bins,
        discover or Discover(),
        columns=values.columns,
    )
    with prefixed(f"{keys.mechanism}."):
        assert variable.parameters
    return variable


def read_ranges(kind: Kind, mechanism: MechanismFamily, ranges: Sequence[Ends]) -> tuple[Range, ...]:
    """Return ranges; ValueError if the mechanism has none, an end is no edge of a bin, or one occurs twice."""
    bins = mechanism.bins_of(kind)
    if ranges and not bins:
        fitting = names_where(lambda family: family.bins_of is not MechanismFamily.bins_of)
        raise ValueError(f"ranges: {mechanism.name} estimates no ranges; choose {fitting}, or remove ranges")
    found: list[Range] = []
    for index, (low, high) in enumerate(ranges):
        with prefixed(f"ranges.{index}: "):
            found.append(kind.range(low, high, bins))
            if found[-1] in found[:-1]:
                raise ValueError(f"{printable(found[-1].text)} occurs twice; remove one")
    return tuple(found)


class _Keys(NamedTuple):
    """The keys of a variable in its spec: those of an attribute are beside its domain; others are around the domain."""

    of_domain: str = "domain"
    beside: str = ""
    where: str = ""
    mechanism: str = "mechanism"

    @classmethod
    def of_attribute(cls, name: str) -> Self:
        key = f"domain.record.{name}"
        return cls(key, f"{key}.", f"{key}: ", f"mechanism.of.{name}")

    def of(self, key: str) -> str:
        """Return the place of the domain, of a key beside it, or of a parameter of the mechanism."""
        if key == "domain":
            return self.of_domain
        return f"{self.beside}{key}" if key in ("sensitive", "tags") else f"{self.mechanism}.{key}"


def _check_kind(
    domain: VariableDomain, sensitive: Sensitive, tags: Sequence[Tag], mechanism: MechanismFamily, keys: _Keys
) -> None:
    """Raise ValueError if the mechanism is not for this kind of domain, or the spec has keys of another kind."""
    if not mechanism.takes(domain.kind):
        fitting = names_where(lambda family: family.takes(domain.kind) and (not keys.beside or family.is_part()))
        raise ValueError(
            f"{keys.mechanism}: {mechanism.name} is for {holds(mechanism.domain_kind)}, and the domain is"
            f" {holds(domain.kind)}; choose one of {fitting}"
        )
    if not KINDS[domain.kind].listed and (sensitive != "all" or tags):
        held = KINDS[domain.kind].one
        raise ValueError(
            f"{keys.where}{mechanism.name} protects every {held} alike; remove {'tags' if tags else 'sensitive'}"
        )


def _check_sensitive(mechanism: MechanismFamily, sensitive: Sensitive, tags: Sequence[Tag], where: str) -> None:
    protects = mechanism.protects
    if tags and not mechanism.takes_tags:
        reason = "is for two values" if mechanism.utility_optimized else f"protects {protects}, hidden or not"
        raise ValueError(
            f"{where}tags: {mechanism.name} {reason}, so it cannot be the common mechanism; choose"
            f" {mechanism.like_with_tags}, or another of {_for_tags()}"
        )
    if not mechanism.utility_optimized and sensitive != "all":
        raise ValueError(
            f"{where}{mechanism.name} protects {protects}; write sensitive: all, or choose one of {_for_tags()}"
        )
    for index, tag in enumerate(tags):
        _check_zone_epsilon(mechanism, tag, f"{where}tags.{index}.zone_epsilon")
    names = [tag.name for tag in tags]
    if len(set(names)) != len(names):
        raise ValueError(f"{where}tag names must differ, got {names}")


def _for_tags() -> str:
    """Return the mechanisms that can be the common one of PUM. This imports all models: only an error needs it."""
    return names_where(lambda family: family.takes_tags)


def _check_zone_epsilon(mechanism: MechanismFamily, tag: Tag, key: str) -> None:
    if tag.zone_epsilon is None:
        return
    if not mechanism.answers_zones:
        others = names_where(lambda family: family.answers_zones)
        raise ValueError(
            f"{key}: {mechanism.name} takes zones without a budget of their own; choose {others}, or remove it"
        )
    if mechanism.lasting_epsilon is not None:
        raise ValueError(f"{key}: a device keeps no answer about a zone; remove it, or mechanism.lasting_epsilon")
    if mechanism.epsilon is not None and tag.zone_epsilon > mechanism.epsilon:
        raise ValueError(f"{key}: must be at most epsilon, the budget of the report ({mechanism.epsilon:.16g})")


def _read_zones(values: Values, tags: Sequence[Tag], folder: SpecFolder, key: str) -> list[Zones | None]:
    found: list[Zones | None] = []
    for index, tag in enumerate(tags):
        zones = None
        if tag.zones is not None:
            with folder.file(tag.zones, f"{key}.{index}.zones") as path:
                zones = read_zones(path, values)
        if zones is not None and tag.zone_epsilon is None and len(zones.labels) * values.size > _MOST_PLACES:
            raise ValueError(
                f"{key}.{index}.zones: {len(zones.labels):,} zones of {values.size:,} values have a table of more than"
                f" {_MOST_PLACES:,} entries; use fewer zones or values, or add zone_epsilon, which needs no table"
            )
        found.append(zones)
    return found


def _read_backgrounds(
    values: Values, sensitive: Mask, tags: Sequence[Tag], folder: SpecFolder, key: str
) -> tuple[Floats, Floats]:
    background, strength = np.full((len(tags), values.size), np.nan), np.full(len(tags), np.nan)
    for index, tag in enumerate(tags):
        if tag.background is not None:
            with folder.file(tag.background, f"{key}.{index}.background") as path:
                background[index], strength[index] = values.read_background(path)
            if tag.strength is not None:
                strength[index] = tag.strength
        elif sensitive.all():
            raise ValueError(
                f"{key}.{index}: {tag.name} needs a background, because no value is non-sensitive; add background"
            )
    return background, strength
