"""One thing that a device holds: the only one of a collection, or an attribute of a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from uldp.schemas.arrays import Floats, Mask
from uldp.schemas.specs.candidates import read_candidates
from uldp.schemas.specs.domains import Sensitive, Tag, VariableDomain
from uldp.schemas.specs.folder import SpecFolder
from uldp.schemas.specs.groups import read_groups
from uldp.schemas.specs.mechanism_family import PrivateSpec, names_where
from uldp.schemas.specs.mechanisms import LevelsSpec, VariableMechanism
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.other_domains import BloomSpec, CohortHashingSpec
from uldp.schemas.specs.value_mechanisms import MAX_DESIGNS, BitFlipSpec, InputDiscriminativeSpec, MetricSpec
from uldp.schemas.specs.values import Values, read_values
from uldp.schemas.specs.zones import Zones, read_zones

#: A collector has a table of the values behind each zone that has a bot of its own; it has at most so many entries.
_MOST_PLACES = 1 << 24

#: The mechanism for tags that is most like one that takes none; ubd for others.
_NEAREST: Mapping[str, str] = {
    "identity": "urr",
    "rr": "urr",
    "warner": "urr",
    "mangat": "urr",
    "rappor": "urap",
    "sue": "urap",
    "oue": "uoue",
    "ss": "uss",
}


@dataclass(frozen=True, eq=False)
class Variable(Values):
    """A domain with the mechanism for its values, its number or its strings.

    Attributes:
        domain: The domain as the spec gives it.
        mechanism: The mechanism, with the epsilon of the collection, and values by their indices.
        share: The share of the reports about this variable; 1 if it is the only one.
        tags: The tags behind which users hide its values.
        sensitive_mask: Shape (|X|,): whether each value is in X_S.
        background: Shape (kappa, |X|): the distribution pi-hat_k of each tag; a row of NaN without background.
        strength: Shape (kappa,): the number of draws that each background is worth; NaN if unknown.
        zones: The zones of each tag; None for a tag without zones.
        simultaneous: Whether all intervals of a table of its shares are to hold at once.
        candidates: The strings whose shares are asked for; empty for other domains.
    """

    domain: VariableDomain
    mechanism: VariableMechanism
    share: float
    tags: Sequence[Tag]
    sensitive_mask: Mask
    background: Floats
    strength: Floats
    zones: Sequence[Zones | None]
    simultaneous: bool
    candidates: Sequence[str] = ()

    @cached_property
    def parameters(self) -> VariableMechanism:
        """The mechanism with numbers in place of auto, as devices know it; these follow from Z."""
        if self.domain.kind != "values":
            return self.mechanism
        pairs = zip(self.tags, self.zones, strict=True)
        bots = sum(1 if zones is None or tag.zone_epsilon is not None else len(zones.labels) for tag, zones in pairs)
        return self.mechanism.resolved(int(self.sensitive_mask.sum()) + bots, self.size + bots)

    def read(self, text: str) -> int | float | str:
        """Return what a table holds about a device: the position of a value, a number, or a string.

        Raises:
            ValueError: if it is not in the domain.
        """
        read = self.domain.number or self.domain.strings
        return self.read_value(text) if read is None else read.read(text)


def read_variable(
    domain: VariableDomain,
    sensitive: Sensitive,
    tags: Sequence[Tag],
    mechanism: VariableMechanism,
    folder: SpecFolder,
    *,
    attribute: str = "",
    share: float = 1.0,
    simultaneous: bool = False,
    candidates: Sequence[str] | None = None,
    candidates_file: str | None = None,
) -> Variable:
    """Check the parts of a variable against each other, and read the files that they name.

    Args:
        domain: The domain.
        sensitive: The sensitive values.
        tags: The tags.
        mechanism: The mechanism.
        folder: The folder of the spec.
        attribute: The name of the attribute in the record; empty if there is no record.
        share: The share of the reports about this variable.
        simultaneous: Whether all intervals of a table of its shares are to hold at once.
        candidates: The strings to ask for, as the spec lists them.
        candidates_file: The file that has them.

    Raises:
        ValueError: if the parts do not fit, or a file is not as it must be. The message begins with the key.
    """
    in_record = f"domain.record.{attribute}"
    # The keys of an attribute are beside those of its domain; those of a collection are around its domain.
    of_domain, beside = (in_record, f"{in_record}.") if attribute else ("domain", "")
    where = f"{in_record}: " if attribute else ""
    if domain.kind != mechanism.domain_kind:
        key = f"mechanism.of.{attribute}" if attribute else "mechanism"
        fitting = names_where(
            lambda family: family.domain_kind == domain.kind and (not attribute or "share" in family.model_fields)
        )
        holds = {"values": "several values", "number": "a number", "strings": "strings", "record": "a record"}
        raise ValueError(
            f"{key}: {mechanism.name} is for {holds[mechanism.domain_kind]}, and the domain is {holds[domain.kind]};"
            f" choose one of {fitting}"
        )
    if domain.kind != "values" and (sensitive != "all" or tags):
        held = "number" if domain.number is not None else "string"
        raise ValueError(
            f"{where}{mechanism.name} protects every {held} alike; remove {'tags' if tags else 'sensitive'}"
        )
    asked: Sequence[str] = ()
    if domain.strings is not None and isinstance(mechanism, BloomSpec | CohortHashingSpec):
        try:
            asked = read_candidates(candidates, candidates_file, domain.strings, mechanism.most_candidates, folder)
        except ValueError as error:
            raise ValueError(f"{beside}{error}") from error
    elif candidates is not None or candidates_file is not None:
        key = "candidates" if candidates is not None else "candidates_file"
        raise ValueError(f"{beside}{key}: only strings have candidates; remove it, or give domain: {{strings: ...}}")
    # The mechanism that obfuscates, whose capabilities matter.
    own = mechanism.of if isinstance(mechanism, LevelsSpec) else mechanism
    if own is not mechanism and any(tag.zones is not None for tag in tags):
        raise ValueError("tags: levels have no zones; remove zones, or choose urr")
    _check_sensitive(own, sensitive, tags, where)
    try:
        values = read_values(domain, folder)
    except ValueError as error:
        raise ValueError(f"{of_domain}.{error}") from error
    try:
        mask = values.mask(sensitive)
    except ValueError as error:
        raise ValueError(f"{beside}sensitive: {error}") from error
    if own.name in {"warner", "mangat"} and values.size != 2:
        raise ValueError(f"{of_domain}: {own.name} is for two values, got {values.size}; use rr or urr")
    if own.name == "mangat" and mask.sum() != 1:
        raise ValueError(f"{beside}sensitive: mangat needs exactly one sensitive value; name one")
    if values.size > own.largest_size:
        reason, other = own.large_domains
        raise ValueError(
            f"{of_domain}: {own.name} {reason}, so it takes at most {own.largest_size:,} values, got"
            f" {values.size:,}; {f'use {other}, or merge values' if other else 'merge values'}"
        )
    if isinstance(mechanism, BitFlipSpec):
        _check_bits(mechanism.bits, values.size, f"mechanism.of.{attribute}.bits" if attribute else "mechanism.bits")
    if isinstance(mechanism, MetricSpec) and values.size % (mechanism.columns or 1):
        raise ValueError(
            f"mechanism.columns: {mechanism.columns} columns do not divide {values.size:,} values into full rows"
            f"{_divisor_near(values.size, mechanism.columns or 1)}"
        )
    if isinstance(mechanism, InputDiscriminativeSpec):
        try:
            mechanism = mechanism.model_copy(update={"groups": read_groups(mechanism.groups, values)})
        except ValueError as error:
            raise ValueError(f"mechanism.groups: {error}") from error
    background, strength = _read_backgrounds(values, mask, tags, folder, f"{beside}tags")
    zones = _read_zones(values, tags, folder, f"{beside}tags")
    variable = Variable(
        values.size,
        values.names,
        domain,
        mechanism,
        share,
        tags,
        mask,
        background,
        strength,
        zones,
        simultaneous,
        asked,
    )
    try:
        assert variable.parameters
    except ValueError as error:
        raise ValueError(f"{f'mechanism.of.{attribute}' if attribute else 'mechanism'}.{error}") from error
    return variable


def _check_bits(bits: int, size: int, key: str) -> None:
    least = -(-size // MAX_DESIGNS)
    if bits > size:
        raise ValueError(f"{key}: there are only {size:,} values; write {size} or less, or choose sue for all bits")
    if bits < least:
        raise ValueError(
            f"{key}: {bits:,} bits of {size:,} values need more than {MAX_DESIGNS:,} designs; write {least} or more"
        )


def _divisor_near(size: int, columns: int) -> str:
    """Return the remedy for a number of columns that leaves a row incomplete."""
    divisors = [number for number in range(2, size + 1) if not size % number]
    if divisors == [size]:  # a single row, which is the line that the values are without columns
        return "; remove columns, because no number does"
    return f"; the nearest number that does is {min(divisors, key=lambda number: abs(number - columns))}"


def _check_sensitive(mechanism: VariableMechanism, sensitive: Sensitive, tags: Sequence[Tag], where: str) -> None:
    for_tags = names_where(lambda family: family.takes_tags)
    alike = "every value" if isinstance(mechanism, InputDiscriminativeSpec) else "every value alike"
    if tags and not mechanism.takes_tags:
        reason = "is for two values" if mechanism.utility_optimized else f"protects {alike}, hidden or not"
        nearest = _NEAREST.get(mechanism.name, "ubd")
        raise ValueError(
            f"{where}tags: {mechanism.name} {reason}, so it cannot be the common mechanism; choose {nearest}, or"
            f" another of {for_tags}"
        )
    if mechanism.name == "mangat" and sensitive == "all":
        raise ValueError(f"{where}mangat needs exactly one sensitive value, for example sensitive: [1]")
    if not mechanism.utility_optimized and sensitive != "all":
        raise ValueError(f"{where}{mechanism.name} protects {alike}; write sensitive: all, or choose one of {for_tags}")
    for index, tag in enumerate(tags):
        _check_zone_epsilon(mechanism, tag, f"{where}tags.{index}.zone_epsilon")
    names = [tag.name for tag in tags]
    if len(set(names)) != len(names):
        raise ValueError(f"{where}tag names must differ, got {names}")


def _check_zone_epsilon(mechanism: VariableMechanism, tag: Tag, key: str) -> None:
    if tag.zone_epsilon is None or not isinstance(mechanism, PrivateSpec):
        return
    if mechanism.name != "urr":
        raise ValueError(f"{key}: {mechanism.name} takes zones without a budget of their own; choose urr, or remove it")
    if mechanism.lasting_epsilon is not None:
        raise ValueError(f"{key}: a device keeps no answer about a zone; remove it, or mechanism.lasting_epsilon")
    if tag.zone_epsilon > mechanism.epsilon:
        raise ValueError(f"{key}: must be at most epsilon, the budget of the report ({mechanism.epsilon:.16g})")


def _read_zones(values: Values, tags: Sequence[Tag], folder: SpecFolder, key: str) -> list[Zones | None]:
    found: list[Zones | None] = []
    for index, tag in enumerate(tags):
        try:
            zones = None if tag.zones is None else read_zones(folder.find(tag.zones), values)
        except ValueError as error:
            path = plain(str(folder.path / (tag.zones or "")))
            raise ValueError(f"{key}.{index}.zones: {path}: {error}") from error
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
            try:
                background[index], strength[index] = values.read_background(folder.find(tag.background))
            except ValueError as error:
                path = plain(str(folder.path / tag.background))
                raise ValueError(f"{key}.{index}.background: {path}: {error}") from error
            if tag.strength is not None:
                strength[index] = tag.strength
        elif sensitive.all():
            raise ValueError(
                f"{key}.{index}: {tag.name} needs a background, because no value is non-sensitive; add background"
            )
    return background, strength
