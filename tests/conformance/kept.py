"""Permanent responses and the noise of each report on top, after docs/client, for the client of ``client``."""

from collections.abc import Callable, Mapping, Sequence
from math import exp

from tests.conformance.responses import RESPONSES, chosen, enlarged, flipped, members, packed, theta, threshold
from tests.conformance.variable import Draws, Variable

Payload = int | bytes
Law = tuple[float, float]


def _subset(of: Variable, draws: Draws) -> bytes:
    drawn = members(len(of.sensitive), chosen(of), draws)
    return packed([j in {of.sensitive[i] for i in drawn} for j in range(of.size)])


def _on_line(of: Variable) -> int:
    g, m = of.printed["g"], of.printed["m"]
    return int((g ** (m - 1) - 1) // (g - 1))


def _of_buckets(of: Variable) -> float:
    return of.buckets / (of.e + of.buckets - 1)


def _of_line(of: Variable) -> float:
    g = int(of.printed["g"])
    return g / (of.e + g - 1)


#: The probability of a uniform payload, and a uniform payload.
UNIFORM: Mapping[str, tuple[Callable[[Variable], float], Callable[[Variable, Draws], Payload]]] = {
    "urr": (
        lambda of: len(of.sensitive) / (len(of.sensitive) + of.e - 1),
        lambda of, draws: of.sensitive[draws.below(len(of.sensitive))],
    ),
    **dict.fromkeys(
        ("ss", "uss"), (lambda of: len(of.sensitive) / (chosen(of) * (of.e - 1) + len(of.sensitive)), _subset)
    ),
    "uhr": (lambda of: 2 / (of.e + 1), lambda of, draws: draws.below(of.columns)),
    "ubd": (
        lambda of: of.design[0] / (len(of.design[1]) * (of.e - 1) + of.design[0]),
        lambda of, draws: draws.below(of.design[0]),
    ),
    "olh": (
        _of_buckets,
        lambda of, draws: draws.below(2**32).to_bytes(4, "little") + draws.below(of.buckets).to_bytes(2, "little"),
    ),
    "cohort-olh": (_of_buckets, lambda of, draws: draws.below(of.mechanism["cohorts"] * of.buckets)),
    "hrr": (lambda of: 2 / (of.e + 1), lambda of, draws: draws.below(2 << (of.size - 1).bit_length())),
    "linear-olh": (_of_line, lambda of, draws: draws.below(of.points * int(of.printed["g"]))),
    "pgr": (lambda of: of.points / (_on_line(of) * (of.e - 1) + of.points), lambda of, draws: draws.below(of.points)),
}


def _unary(of: Variable) -> list[Law]:
    true = theta(of)
    return [
        (true, true / ((1 - true) * of.e + true)) if j in of.sensitive else (true * (1 - 1 / of.e), 0.0)
        for j in range(of.size)
    ]


def _thresholded(of: Variable) -> list[Law]:
    half, t = of.epsilon / 2, threshold(of)
    return [(1 - exp(half * (t - 1)) / 2, exp(-half * t) / 2)] * of.size


def _bloom(of: Variable) -> list[Law]:
    of_hash = of.epsilon / of.mechanism["hashes"]
    true = of.mechanism.get("theta") or 1 / (1 + exp(-of_hash / 2))
    return [(true, true / ((1 - true) * exp(of_hash) + true))] * int(of.mechanism["bits"])


def _flips(of: Variable) -> list[Law]:
    flip = 1 / (1 + exp(of.epsilon / 2))
    return [(1 - flip, flip)] * of.size


#: The probabilities of each bit for the true symbol, and for others.
BITS: Mapping[str, Callable[[Variable], Sequence[Law]]] = {
    "urap": _unary,
    "the": _thresholded,
    "bloom": _bloom,
    "she": _flips,
}


class Device:
    """A device that holds one value, and keeps its response to it."""

    def __init__(self, once: Variable) -> None:
        lasting = float(once.mechanism["lasting_epsilon"])
        self._once = once
        self._inner = Variable(once.domain, {**once.mechanism, "epsilon": lasting}, once.printed, once.epsilon)
        self._kept: Payload | None = None

    def report(self, value: float | str, tag: str | None, draws: Draws) -> Payload:
        z = self._once.encode(value, tag, draws)
        drawn = self._response(z, draws)  # in each report, so that it takes the same time
        self._kept = drawn if self._kept is None else self._kept
        if self._once.name in UNIFORM:
            uniform, payload = UNIFORM[self._once.name]
            one, other = uniform(self._once), uniform(self._inner)
            replaced, anew = draws.noise((one - other) / (1 - other)), payload(self._once, draws)
            return anew if replaced else self._kept
        assert isinstance(self._kept, bytes)
        head, bits = self._noisy(self._kept, draws)
        return enlarged(self._once, bits, draws) if self._once.name == "she" else head + packed(bits)

    def _response(self, z: int, draws: Draws) -> Payload:
        if self._once.name == "she":
            return packed(flipped(self._inner, z, draws))
        return RESPONSES[self._once.name](self._inner, z, draws)

    def _noisy(self, kept: bytes, draws: Draws) -> tuple[bytes, list[bool]]:
        """Return what is in front of the bits, and the bits with noise."""
        laws = [*zip(BITS[self._once.name](self._inner), BITS[self._once.name](self._once), strict=True)]
        head = kept[: len(kept) - -(-len(laws) // 8)]
        bits = []
        for number, ((p, q), (p_once, q_once)) in enumerate(laws):
            byte = kept[len(head) + number // 8]
            one = byte >> 7 - number % 8 & 1
            changed = (
                ((1 - p_once) * (1 - q) - (1 - p) * (1 - q_once)) / (p - q)
                if one
                else (p * q_once - p_once * q) / (p - q)
            )
            bits.append(bool(one ^ draws.noise(max(changed, 0.0))))
        return head, bits
