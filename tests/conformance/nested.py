"""Tags whose zones have a budget of their own, after docs/client, for the client of ``client``."""

from dataclasses import dataclass
from itertools import accumulate, count
from math import exp

from tests.conformance.functions import digits, vector_of
from tests.conformance.variable import FLOATS, Draws, Variable


@dataclass
class Nest:
    """The points of a tag, and those near each zone; none are, if the tag is not nested."""

    zones: int
    points: int
    planes: list[list[int]]
    weight: float
    uniform: float


def is_nested(of: Variable) -> bool:
    return any("zone_epsilon" in tag for tag in of.domain.get("tags", ()))


def payloads(of: Variable) -> int:
    return _first(of, _nests(of))[-1]


def response(of: Variable, z: int, draws: Draws) -> int:
    """The payload for a value, or for a zone: those of a tag follow those of the tags before it."""
    nests, values = _nests(of), int(of.domain["size"])
    inputs = [*range(values), *(values + i for i, nest in enumerate(nests) for _ in range(nest.zones))]
    plain = [*sorted(of.domain["sensitive"]), *(values + i for i, nest in enumerate(nests) if not nest.planes)]
    nested = [values + i for i, nest in enumerate(nests) if nest.planes]
    ends = [*accumulate([len(plain), *(nests[symbol - values].weight for symbol in nested)])]

    noisy, kind = draws.noise(ends[-1] / (ends[-1] + of.e - 1)), draws.below(FLOATS)
    other, place = plain[draws.below(len(plain))], sum(kind >= round(FLOATS * end / ends[-1]) for end in ends[:-1])
    noise = nested[place - 1] if place else other
    symbol = noise if noisy else inputs[z]
    payload = _first(of, nests)[symbol]
    for tag in nested:
        point = _answer(nests[tag - values], z - inputs.index(tag) if inputs[z] == tag else 0, noisy, draws)
        payload += point if symbol == tag else 0
    return payload


def _answer(nest: Nest, zone: int, noisy: bool, draws: Draws) -> int:
    uniform, anywhere = draws.noise(nest.uniform), draws.below(nest.points)
    near = nest.planes[zone][draws.below(len(nest.planes[zone]))]
    return anywhere if noisy or uniform else near


def _first(of: Variable, nests: list[Nest]) -> list[int]:
    """The first payload of each value and tag, and the number of all."""
    return [*range(of.domain["size"]), *accumulate((nest.points for nest in nests), initial=of.domain["size"])]


def _nests(of: Variable) -> list[Nest]:
    """One for each nested tag, and one for each zone of another tag."""
    nests = []
    for tag in of.domain["tags"]:
        zones = sum(name == tag["name"] for name, _ in of.bots)
        nests += (
            [_nest(zones, tag["zone_epsilon"], of.epsilon)]
            if "zone_epsilon" in tag
            else [Nest(1, 1, [], 1.0, 1.0)] * zones
        )
    return nests


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, number))


def _nest(zones: int, zone_epsilon: float, epsilon: float) -> Nest:
    odds, most = exp(zone_epsilon), next(prime for prime in count(max(zones - 1, 2)) if _is_prime(prime))
    g = min(filter(_is_prime, range(2, most + 1)), key=lambda prime: (abs(prime - odds - 1), prime))
    m = next(m for m in count(2) if (g**m - 1) // (g - 1) >= zones)
    vectors = [digits(vector_of(point, g), g, m) for point in range((g**m - 1) // (g - 1))]
    planes = [
        [y for y, other in enumerate(vectors) if sum(a * b for a, b in zip(x, other, strict=True)) % g == 0]
        for x in vectors[:zones]
    ]
    points, on_plane = len(vectors), len(planes[0])
    far = (exp(-zone_epsilon) - exp(-epsilon)) / (1 - exp(-epsilon))
    total = on_plane + (points - on_plane) * far
    return Nest(zones, points, planes, points / total, far * points / total)
