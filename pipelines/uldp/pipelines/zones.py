"""Zones for the tags of a spec: how many pay off, the file that divides a tag, and the price, which is said first."""

import math
from collections.abc import Iterator
from pathlib import Path

from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.zones.zone_choice import best_zones, equal_zones, expected_l1, with_zones
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.pipelines.aside import written_aside
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import names_where
from uldp.schemas.specs.mistakes import near, notes, quote
from uldp.schemas.specs.variable import Variable
from uldp.schemas.specs.zones import Zones, zones_text

#: The budget of the answer about the zone that ``proposals`` tries.
_ZONE_EPSILON = 1.0
# Two distributions are no further apart.
_MOST_L1 = 2.0
#: Zones are proposed if they take this share from the expected error.
_WORTH = 0.1
#: Forecasts for larger domains take more than a second.
_LARGEST_DOMAIN = 10_000


def divide(spec: CollectionSpec, name: str, path: Path, *, count: int | None, epsilon: float | None, users: int) -> str:
    """Write the zones of a tag, ``attribute.tag`` of a record, to a file, and return what to expect of them.

    The number with the least error is taken without ``count``, a bot for each zone without ``epsilon``. ``users`` are
    the reports from which zones are learned. RequestError if the spec has no such tag, background, or mechanism.
    """
    variable, tag = _find(spec, name)
    of = variable.tags[tag]
    if math.isnan(variable.background[tag][0]):
        raise RequestError(f"tag {of.name} has no background, so nothing says how to divide it; add background")
    if refusal := _refusal(variable, epsilon):
        raise RequestError(refusal)
    if count is None:
        if math.isnan(variable.strength[tag]):
            raise RequestError(
                f"the background of {of.name} has no strength, so no number of zones is best; add --count"
            )
        zones, before, after = best_zones(variable, tag, users, epsilon)
    else:
        zones = equal_zones(variable.background[tag], count)
        before = expected_l1(with_zones(variable, tag, None, None), users)
        after = expected_l1(with_zones(variable, tag, zones, epsilon), users)
    if len(zones.labels) < 2:
        raise RequestError(f"the background of {of.name} gives one zone; divide the tag by hand, or add values to it")
    with written_aside(path) as aside:
        aside.write_bytes(zones_text(zones, variable.labels).encode())
    lines = [
        f"{path}: {len(zones.labels)} zones",
        price(variable, tag, zones, epsilon),
        f"expected l1 of the shares, at n = {users:,}: at most {_l1(after)}; {_l1(before)} without zones",
    ]
    return "\n".join(lines)


def _l1(of_unbiased: float) -> str:
    """Write the error of the unbiased shares as a bound of that of the published ones, which are no further apart."""
    return f"{min(of_unbiased, _MOST_L1):.3g}"


def _find(spec: CollectionSpec, name: str) -> tuple[Variable, int]:
    known = {
        f"{attribute}.{tag.name}" if attribute else tag.name: (variable, index)
        for attribute, variable in spec.variables.items()
        for index, tag in enumerate(variable.tags)
    }
    if name not in known:
        have = ", ".join(known) or "none"
        raise RequestError(f"{spec.collection} has no tag {quote(name)} (it has {have}){notes(near(name, known))}")
    return known[name]


def _refusal(variable: Variable, epsilon: float | None) -> str:
    """Return why a tag cannot have zones, or not with this budget of their own; empty if it can."""
    mechanism = variable.mechanism
    if mechanism.obfuscates is not mechanism:
        return f"{mechanism.name} have no zones; choose {_answering()}"
    if epsilon is None:
        return ""
    if not mechanism.answers_zones or epsilon > (mechanism.epsilon or 0.0):
        return (
            f"--zone-epsilon {epsilon:g} needs the mechanism {_answering()} with an epsilon of this or more, not"
            f" {mechanism.name} with {mechanism.epsilon:.16g}"
        )
    if mechanism.lasting_epsilon is not None:
        return "a device keeps no answer about a zone; leave out --zone-epsilon, or remove mechanism.lasting_epsilon"
    return ""


def _answering() -> str:
    return names_where(lambda family: family.answers_zones)


def price(variable: Variable, tag: int, zones: Zones, epsilon: float | None) -> str:
    """Return what a report tells of the zone behind a tag, as ``uldp check`` says it."""
    decoder = build_variable(with_zones(variable, tag, zones, epsilon)).decoder
    assert isinstance(decoder, ZonedDecoder)
    return decoder.price(tag)


def proposals(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each way to learn what is behind a tag that would pay off, with its price first."""
    for attribute, variable in spec.variables.items():
        for tag, of in enumerate(variable.tags):
            if of.zones is not None or math.isnan(variable.strength[tag]) or variable.size > _LARGEST_DOMAIN:
                continue
            for budget in (_ZONE_EPSILON, None):
                if _refusal(variable, budget):
                    continue
                zones, before, after = best_zones(variable, tag, max(round(variable.share * users), 1), budget)
                if after < (1 - _WORTH) * min(before, _MOST_L1):
                    name = f"{attribute}.{of.name}" if attribute else of.name
                    option = "" if budget is None else f" --zone-epsilon {budget:g}"
                    yield (
                        f"{price(variable, tag, zones, budget)}; the expected l1 falls from at most {_l1(before)} to at"
                        f" most {_l1(after)} (uldp zones SPEC --tag {name}{option} --users {users} --to FILE)"
                    )
