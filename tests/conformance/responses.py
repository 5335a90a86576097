"""The mechanisms of the client of ``client``: what a device reports of a symbol or a point, and in which form."""

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import accumulate
from math import comb, exp, hypot, log, sqrt
from typing import Any

from tests.conformance import designs, nested
from tests.conformance.functions import bucket_of, digits, point_of, positions, vector_of
from tests.conformance.variable import FLOATS, Draws, Variable

WEIGHTS = 2**62


def packed(bits: Sequence[bool]) -> bytes:
    padded = [*bits, *[False] * (-len(bits) % 8)]
    return int("".join("01"[bit] for bit in padded), 2).to_bytes(len(padded) // 8, "big")


def _response(of: Variable, z: int, draws: Draws) -> int:
    if nested.is_nested(of):
        return nested.response(of, z, draws)
    v = len(of.sensitive)
    noisy, drawn = draws.noise(v / (v + of.e - 1)), of.sensitive[draws.below(v)]
    return drawn if noisy else z


def theta(of: Variable) -> float:
    usual = 1 / 2 if of.name in ("oue", "uoue") else sqrt(of.e) / (sqrt(of.e) + 1)
    given = of.mechanism.get("theta", usual)
    return designs.best_theta(len(of.sensitive), of.size, of.epsilon) if given == "auto" else float(given)


def _bits(of: Variable, z: int, draws: Draws) -> bytes:
    true, sensitive = theta(of), of.sensitive
    bits = [j in sensitive and draws.noise(true / ((1 - true) * of.e + true)) for j in range(of.size)]
    bits[z] = not draws.noise(1 - true if z in sensitive else 1 - true * (1 - 1 / of.e))
    return packed(bits)


def threshold(of: Variable) -> float:
    c = exp(-of.epsilon / 2)
    return float(of.mechanism.get("theta") or 2 / of.epsilon * log((1 + c + sqrt(1 - c + c**2)) / (3 * c)))


def _thresholded(of: Variable, z: int, draws: Draws) -> bytes:
    half, t = of.epsilon / 2, threshold(of)
    bits = [draws.noise(exp(-half * t) / 2) for _ in range(of.size)]
    bits[z] = not draws.noise(exp(half * (t - 1)) / 2)
    return packed(bits)


def _by_group(of: Variable, z: int, draws: Draws) -> bytes:
    groups = sorted(of.mechanism["groups"], key=lambda group: float(group["epsilon"]))
    rest = next(i for i, group in enumerate(groups) if "values" not in group)
    group_of = [
        next((i for i, group in enumerate(groups) if j in group.get("values", ())), rest) for j in range(of.size)
    ]
    laws = [of.printed["p and q of groups, over 2^53"][group] for group in group_of]
    bits = [draws.below(FLOATS) < q for _, q in laws]
    bits[z] = draws.below(FLOATS) >= FLOATS - laws[z][0]
    return packed(bits)


def _flipped(of: Variable, z: int, draws: Draws) -> bytes:
    most = of.mechanism["bits"]
    c, symbol = divmod(z, of.size)
    held = [symbol == j for j in range(c * most, min((c + 1) * most, of.size))]
    noise = 1 / (exp(of.epsilon / min(len(held), 2)) + 1)
    bits = packed([bit ^ draws.noise(noise) for bit in held])
    return c.to_bytes(2, "little") + bits.ljust(-(-min(most, of.size) // 8), b"\0")


def _weights(of: Variable, z: int) -> list[int]:
    columns, scale = of.mechanism.get("columns") or of.size, of.printed["scale"]
    long = [side for side in (of.size // columns, columns) if side > 2]
    weighted = of.epsilon * min(long, default=0) >= len(long)

    def weight(y: int) -> float:
        distance = hypot(y % columns - z % columns, y // columns - z // columns)
        places = ((y // columns, of.size // columns), (y % columns, columns))
        borders = sum(place in {0, side - 1} for place, side in places if side > 2) if weighted else 0
        return exp(-scale * min(of.epsilon * distance, 18) / of.epsilon) / (1 - exp(-scale)) ** borders

    floats = [weight(y) for y in range(of.size)]
    parts = [round(each / sum(floats) * WEIGHTS) for each in floats]
    parts[floats.index(max(floats))] += WEIGHTS - sum(parts)
    return parts


def _near(of: Variable, z: int, draws: Draws) -> int:
    drawn = draws.below(WEIGHTS)
    return sum(below <= drawn for below in accumulate(_weights(of, z)))


def members(v: int, w: int, draws: Draws) -> list[int]:
    found: list[int] = []
    for last in range(v - w, v):
        drawn = draws.below(last + 1)
        found.append(last if drawn in found else drawn)
    return found


def chosen(of: Variable) -> int:
    v, w = len(of.sensitive), of.mechanism.get("w", "auto")
    if of.name == "ss":
        return max(round(v / (exp(of.of_sizes) + 1)), 1)
    return designs.best_subset(v, of.size, of.of_sizes) if w == "auto" else int(w)


def _subset(of: Variable, z: int, draws: Draws) -> bytes:
    """Of ss and uss; the members are positions in Z_S."""
    v, w = len(of.sensitive), chosen(of)
    found = members(v, w, draws)
    noisy, place = draws.noise(v / (w * of.e + v - w)), draws.below(w)
    if not noisy and z not in of.sensitive:
        return packed([j == z for j in range(of.size)])
    if not noisy and of.sensitive.index(z) not in found:
        found[place] = of.sensitive.index(z)
    return packed([j in {of.sensitive[i] for i in found} for j in range(of.size)])


def _of_set(of: Variable, held: Sequence[int], draws: Draws) -> bytes:
    v, count = of.items + of.held, of.held
    w = int(of.printed["chosen"])
    found = members(v, w, draws)
    total = comb(v, w) - comb(v - count, w)
    noisy = draws.noise(1 / (1 + (of.e - 1) * (total / comb(v, w))))
    most, drawn = min(count, w), draws.below(FLOATS)
    ends = [*accumulate(FLOATS * comb(count, h) * comb(v - count, w - h) // total for h in range(1, most + 1))]
    h = 1 + sum(drawn >= end for end in ends)
    leaving, coming = _shuffled(found, most, draws), _shuffled(held, most, draws)
    if not noisy and h <= most and not set(found) & set(held):
        found = [j for j in found if j not in leaving[:h]] + coming[:h]
    return packed([j in found for j in range(v)])


def _hits(of: Variable, held: Sequence[int], draws: Draws) -> bytes:
    g, count = int(of.printed["buckets"]), of.held
    seed, kind, place = draws.below(2**32), draws.below(FLOATS), draws.below(g - count)
    hit = {bucket_of(seed, z, g) for z in held}
    free = [bucket for bucket in range(g) if bucket not in hit]
    hit |= {*free[: count - len(hit)]}
    chosen = kind // int(of.printed["hit"])
    left = [bucket for bucket in range(g) if bucket not in hit]
    bucket = sorted(hit)[chosen] if chosen < count else left[place]
    return seed.to_bytes(4, "little") + bucket.to_bytes(2, "little")


def _cohort_hits(of: Variable, held: Sequence[int], draws: Draws) -> int:
    g, cohorts, most = int(of.printed["buckets"]), int(of.printed["cohorts"]), of.held
    cohort, kind, anywhere = draws.below(cohorts), draws.below(FLOATS), draws.below(g)
    hit = sorted({bucket_of(cohort, z, g) for z in held})
    chosen = kind // int(of.printed["hits"][len(hit) - 1]) if hit else most
    return cohort * g + (hit[chosen] if chosen < len(hit) else anywhere)


def _shuffled(row: Sequence[int], first: int, draws: Draws) -> list[int]:
    shuffled = list(row)
    for i in range(first):
        other = i + draws.below(len(row) - i)
        shuffled[i], shuffled[other] = shuffled[other], shuffled[i]
    return shuffled


def _column(of: Variable, z: int, draws: Draws) -> int:
    noisy, noise, column = draws.noise(2 / (of.e + 1)), draws.below(of.columns), draws.below(of.columns)
    row = of.sensitive.index(z) + 1 if z in of.sensitive else 1
    column ^= (row & column).bit_count() % 2 * (row & -row)
    return noise if noisy else column if z in of.sensitive else of.columns + of.others.index(z)


def _design_block(of: Variable, z: int, draws: Draws) -> int:
    points, d = of.design
    noisy, noise = draws.noise(points / (len(d) * (of.e - 1) + points)), draws.below(points)
    drawn = d[draws.below(len(d))]
    if noisy:
        return noise
    return (of.sensitive.index(z) - drawn) % points if z in of.sensitive else points + of.others.index(z)


def _hash(of: Variable, z: int, draws: Draws) -> bytes:
    g = of.buckets
    seed, noisy, shift = draws.below(2**32), draws.noise((g - 1) / (of.e + g - 1)), 1 + draws.below(g - 1)
    bucket = (bucket_of(seed, z, g) + noisy * shift) % g
    return seed.to_bytes(4, "little") + bucket.to_bytes(2, "little")


def _row(of: Variable, z: int, draws: Draws) -> int:
    row = draws.below(1 << (of.size - 1).bit_length())
    return 2 * row + ((row & z).bit_count() % 2 ^ draws.noise(1 / (of.e + 1)))


def _linear(of: Variable, z: int, draws: Draws) -> int:
    g, m = of.printed["g"], of.printed["m"]
    point, noisy, shift = draws.below(of.points), draws.noise((g - 1) / (of.e + g - 1)), 1 + draws.below(g - 1)
    own = sum(a * b for a, b in zip(digits(vector_of(point, g), g, m), digits(z, g, m), strict=True))
    return int(point * g + (own + noisy * shift) % g)


def _point(of: Variable, z: int, draws: Draws) -> int:
    g, m = of.printed["g"], of.printed["m"]
    on_plane = (g ** (m - 1) - 1) // (g - 1)
    noisy = draws.noise(of.points / (on_plane * (of.e - 1) + of.points))
    anywhere, number = draws.below(of.points), draws.below(on_plane)
    x = digits(vector_of(z, g), g, m)
    place = max(place for place, digit in enumerate(x) if digit)
    y = digits(vector_of(number, g), g, m - 1)
    y.insert(place, 0)
    y[place] = -sum(a * b for a, b in zip(x, y, strict=True)) * pow(x[place], -1, g) % g
    return anywhere if noisy else point_of(y, g)


def flipped(of: Variable, z: int, draws: Draws) -> list[bool]:
    return [(j == z) ^ draws.noise(1 / (1 + exp(of.epsilon / 2))) for j in range(of.size)]


def enlarged(of: Variable, ones: Sequence[bool], draws: Draws) -> bytes:
    odds = [exp(min(of.epsilon / 2 * 2**bit, 700)) for bit in range(15)]
    magnitudes = [0] * of.size
    for bit, each in enumerate(odds):
        if each < FLOATS - 1:
            magnitudes = [magnitude + (draws.noise(1 / (1 + each)) << bit) for magnitude in magnitudes]
    entries = [min(1 + m if one else -m, 32767) for one, m in zip(ones, magnitudes, strict=True)]
    return b"".join(entry.to_bytes(2, "little", signed=True) for entry in entries)


def _duchi(of: Variable, point: int, draws: Draws) -> int:
    return (draws.below(1 << 16) < point) ^ draws.noise(1 / (of.e + 1))


def _block(of: Variable, point: int, draws: Draws) -> int:
    bins, width = of.mechanism.get("bins", 1024), of.printed["width"]
    noisy = draws.noise((bins + width) / (bins + width * of.e))
    anywhere, near = draws.below(bins + width), point + draws.below(width)
    return int(anywhere if noisy else near)


@cache
def _noise_weights(epsilon: float, steps: int) -> list[int]:
    """Those of the noise -N, ..., N."""
    with localcontext(prec=40):
        factor = (Decimal(epsilon) / steps).exp() * (1 - Decimal(10) ** -30)
        last = int(64 / (factor - 1) ** 2) + 1
        side = [last, int((factor - 1) * last)]
        total = sum(side)
        while 2 * (total + (inner := int(factor * side[-1]))) <= FLOATS:
            side.append(inner)
            total += inner
    return [*side, *side[-2::-1]]


def _geometric(of: Variable, point: int, draws: Draws) -> int:
    steps = of.mechanism.get("bins", 16)
    weights = _noise_weights(of.epsilon, steps)
    drawn, margin = draws.below(sum(weights)), len(weights) // 2 - steps
    noise = sum(drawn >= below for below in accumulate(weights)) - len(weights) // 2
    return int(min(max(point + noise + margin, 0), steps + 2 * margin))


def _cohort_hash(of: Variable, z: int, draws: Draws) -> int:
    g = of.buckets
    cohort = draws.below(of.mechanism["cohorts"])
    noisy, shift = draws.noise((g - 1) / (of.e + g - 1)), 1 + draws.below(g - 1)
    return cohort * g + (positions(cohort, z, 1, g)[0] + noisy * shift) % g


def _bloom(of: Variable, z: int, draws: Draws) -> bytes:
    size, hashes = of.mechanism.get("bits", 128), of.mechanism.get("hashes", 2)
    theta = of.mechanism.get("theta") or 1 / (1 + exp(-of.epsilon / hashes / 2))
    cohort = draws.below(of.mechanism.get("cohorts", 64))
    bits = [draws.noise(theta / ((1 - theta) * exp(of.epsilon / hashes) + theta)) for _ in range(size)]
    for position in positions(cohort, z, hashes, size):
        bits[position] = not draws.noise(1 - theta)
    return cohort.to_bytes(2, "little") + packed(bits)


RESPONSES: dict[str, Callable[[Variable, Any, Draws], int | bytes]] = {
    "identity": lambda of, z, draws: z,
    **dict.fromkeys(("rr", "warner", "mangat", "urr"), _response),
    **dict.fromkeys(("rappor", "sue", "oue", "urap", "uoue"), _bits),
    **dict.fromkeys(("ss", "uss"), _subset),
    "set-ss": _of_set,
    "set-olh": lambda of, held, draws: (_hits if of.of_strings is None else _cohort_hits)(of, held, draws),
    **dict.fromkeys(("hrr", "blh"), _row),
    "the": _thresholded,
    "idue": _by_group,
    "bit-flip": _flipped,
    "metric": _near,
    "uhr": _column,
    "ubd": _design_block,
    "olh": _hash,
    "linear-olh": _linear,
    "pgr": _point,
    "she": lambda of, z, draws: enlarged(of, flipped(of, z, draws), draws),
    "duchi": _duchi,
    "block": _block,
    "geometric": _geometric,
    "cohort-olh": _cohort_hash,
    "bloom": _bloom,
}
#: The number of payloads of the mechanisms that send symbols.
SYMBOLS: dict[str, Callable[[Variable], int]] = {
    **dict.fromkeys(("identity", "rr", "warner", "mangat", "metric"), lambda of: of.size),
    "urr": lambda of: nested.payloads(of) if nested.is_nested(of) else of.size,
    **dict.fromkeys(("hrr", "blh"), lambda of: 2 << (of.size - 1).bit_length()),
    "uhr": lambda of: of.columns + len(of.others),
    "ubd": lambda of: of.design[0] + len(of.others),
    "linear-olh": lambda of: of.points * int(of.printed["g"]),
    "pgr": lambda of: of.points,
    "duchi": lambda of: 2,
    "block": lambda of: int(of.mechanism.get("bins", 1024)) + int(of.printed["width"]),
    "geometric": lambda of: len(_noise_weights(of.epsilon, steps := of.mechanism.get("bins", 16))) - steps,
    "cohort-olh": lambda of: of.buckets * int(of.mechanism["cohorts"]),
    "set-olh": lambda of: int(of.printed["buckets"]) * int(of.printed["cohorts"]),
}


def symbols(of: Variable) -> int | None:
    """The number of payloads that are symbols, None for bytes."""
    if of.name == "set-olh" and of.of_strings is None:
        return None  # of listed items, a report has a seed
    return SYMBOLS[of.name](of) if of.name in SYMBOLS else None


def width(of: Variable) -> int:
    """The bytes of a payload in a record."""
    if symbols(of) is not None:
        return 4
    match of.name:
        case "olh" | "set-olh":
            return 6
        case "bit-flip":
            return 2 + -(-min(int(of.mechanism["bits"]), of.size) // 8)
        case "bloom":
            return 2 + int(of.mechanism.get("bits", 128)) // 8
        case "set-ss":
            return -(-(of.items + of.held) // 8)
        case "she":
            return 2 * of.size
    return -(-of.size // 8)
