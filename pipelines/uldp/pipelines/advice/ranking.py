"""The mechanisms for a question, simulated and ranked by the error of the estimate that would be published."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.decoder import Errors
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Mechanism, PayloadForm
from uldp.pipelines.advice.question import Question
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import UldpError
from uldp.schemas.specs.budget import MAX_EPSILON
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import Kind
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.specfile import SpecError

#: A simulation has about so many symbols in all, in so many windows at least and at most.
_SYMBOLS, _LEAST_WINDOWS, _MOST_WINDOWS = 1 << 12, 8, 256
#: A search ends where its bounds differ by this factor.
_NEAR = 1.02
_LEAST_EPSILON, _MOST_USERS = 0.01, 1e12


@dataclass(frozen=True)
class Advice:
    """A mechanism, and what it would do."""

    mechanism: str  # its name
    spec: dict[str, Any]  # the spec with it
    epsilon: float  # the budget of one report: that of the question, or the least that suffices
    users: int  # the number of users: that of the question, or the least that suffices
    errors: Errors  # the errors to expect; of strings, with the least share that is found in place of l1
    payload: int  # the most bytes of a payload
    draws: int  # the numbers that a device draws for a report
    weight: float  # the number of users for whom one forged report counts
    kept: str  # whether devices may keep their responses, and whether these would link the reports of a device


@dataclass(frozen=True)
class LeftOut:
    """A mechanism that does not suit the question, and why."""

    mechanism: str
    reason: str


def rank(question: Question, progress: Callable[[str], None]) -> tuple[list[Advice], list[LeftOut]]:
    """Return mechanisms that suit, simulated, first that of least error, fewest users or least epsilon; and others."""
    ranked, left_out = [], []
    for mechanism in _candidates(question):
        progress(mechanism)
        try:
            ranked.append(_advise(question, mechanism))
        except SpecError as error:
            reason = str(error).splitlines()[0].removeprefix("spec: ")
            left_out.append(LeftOut(mechanism, reason))
        except _UnsuitableError as error:
            left_out.append(LeftOut(mechanism, str(error)))

    def order(advice: Advice) -> tuple[float, float]:
        asked = advice.users if question.users is None else advice.epsilon if question.epsilon is None else 0.0
        return asked, advice.errors.l1

    return sorted(ranked, key=order), left_out


class _UnsuitableError(UldpError):
    """A mechanism cannot be built at this epsilon, or no epsilon or number of users reaches the error."""


def ranked_mechanisms(*, utility_optimized: bool) -> list[str]:
    """Return the mechanisms that are compared: those that protect all values alike, or those of sensitive ones."""
    models = {name: family(name) for name in mechanism_names()}
    return [
        name for name, model in models.items() if model.utility_optimized == utility_optimized and not model.not_ranked
    ]


def _candidates(question: Question) -> Iterator[str]:
    """Yield the mechanisms to try: with tags, only those that PUM can use; of other kinds than values, all for them."""
    if not question.kind.listed:
        yield from (name for name in mechanism_names() if family(name).takes(question.kind.name))
        return
    if not question.keys.get("tags"):
        yield from ranked_mechanisms(utility_optimized=False)
    if question.keys.get("sensitive", "all") != "all":
        yield from ranked_mechanisms(utility_optimized=True)


def _advise(question: Question, mechanism: str) -> Advice:
    model = family(mechanism)
    plain = not model.utility_optimized
    own = {key: value for key, value in question.own.items() if key in model.model_fields}

    def keys(epsilon: float) -> dict[str, Any]:
        return {"name": mechanism, "epsilon": epsilon, **model.example(question.size), **own}

    def build(epsilon: float) -> _Simulated:
        return _Simulated(question, question.spec(keys(epsilon), plain=plain))

    epsilon, users = question.epsilon, question.users
    if users is None:
        assert epsilon is not None
        assert question.error is not None
        known = build(epsilon)
        users = round(_least(lambda n: known.errors(n).l1, question.error, 10, _MOST_USERS, 1, "users"))
    elif epsilon is None:
        assert question.error is not None
        epsilon = _least(
            lambda e: build(e).errors(users).l1,
            question.error,
            _LEAST_EPSILON,
            _largest(build, question.lasting_epsilon or MAX_EPSILON),
            _LEAST_EPSILON,
            "epsilon",
        )
    simulated = build(epsilon)
    advised = keys(epsilon)
    if question.lasting_epsilon is not None:
        advised["lasting_epsilon"] = question.lasting_epsilon
        _Simulated(question, question.spec(advised, plain=plain))  # raises if the mechanism does not take it
    return Advice(
        mechanism,
        question.spec_keys(advised, plain=plain),
        epsilon,
        users,
        simulated.errors(users),
        _payload_bytes(simulated.form),
        _draws(simulated.protocol, question.kind),
        simulated.decoder.weight,
        _lasting(simulated.mechanism, question, advised, users, plain=plain),
    )


class _Simulated:
    """A mechanism at one epsilon."""

    def __init__(self, question: Question, spec: CollectionSpec) -> None:
        try:
            protocol = build_protocol(spec)
        except ValueError as error:
            reason = str(error).removeprefix(f"collection {spec.collection} version {spec.version}: ")
            raise _UnsuitableError(reason) from error
        self.form = protocol.mechanism.form
        # The table of all users is that of the sum of the slices: its errors are those without slices.
        self.protocol = protocol.of_all
        #: The mechanism of the shares, and the part of the users who report by it.
        self.mechanism, self._part = self.protocol.mechanism, 1.0
        self.decoder = self.protocol.decoder.without_sizes
        if self.decoder is not self.protocol.decoder:
            self.mechanism, self._part = self.mechanism.parts[0], float(self.mechanism.shares[0])
        self._r = question.true_shares(spec, self.protocol) if self.decoder.needs_truth else np.ones(1)

    def errors(self, users: float) -> Errors:
        """Return the errors to expect; of strings the least share that is found, and the error of a rare one."""
        windows = int(np.clip(_SYMBOLS // len(self._r), _LEAST_WINDOWS, _MOST_WINDOWS))
        return self.decoder.errors(self._r, round(users * self._part), "auto", windows)


def _largest(build: Callable[[float], _Simulated], most: float) -> float:
    """Return the first of ``most``, its half, and so on, that can be built; _UnsuitableError, as of ``most``, else."""
    first: _UnsuitableError | None = None
    while most > _LEAST_EPSILON:
        try:
            build(most)
        except _UnsuitableError as error:
            first = first or error
            most /= 2
        else:
            return most
    raise first or _UnsuitableError("no epsilon suits")


def _least(error: Callable[[float], float], target: float, low: float, high: float, step: float, what: str) -> float:
    """Return about the least multiple of ``step`` at which a falling error is at most ``target``, by bisection."""
    if error(high) > target:
        raise _UnsuitableError(f"no {what} up to {high:g} gives an expected l1 error of {target:g}")
    if error(low) <= target:
        return low
    while high / low > _NEAR:
        # An error is one of a simulation, so it is that of exactly this argument.
        middle = round(math.ceil(math.sqrt(low * high) / step) * step, 2)
        if middle >= high:
            break
        low, high = (low, middle) if error(middle) <= target else (middle, high)
    return high


def _payload_bytes(form: PayloadForm) -> int:
    """Return the most bytes of a payload in Avro, where a symbol is a zigzag varint of 7 bits a byte."""
    if form.width is not None:
        return form.width
    assert form.symbols is not None
    return max(-(-(2 * (form.symbols - 1)).bit_length() // 7), 1)


class _Counting:
    """Randomness that counts the numbers that are drawn."""

    def __init__(self) -> None:
        self.draws, self._rng = 0, np.random.default_rng(0)

    def random(self, size: int | tuple[int, ...]) -> Floats:
        self.draws += math.prod(np.atleast_1d(size).tolist())
        return self._rng.random(size)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        self.draws += math.prod(np.atleast_1d(size).tolist())
        return self._rng.integers(low, high, size)


def _draws(protocol: LdpProtocol, kind: Kind) -> int:
    """Return the number of draws for a report, which is the same for each value."""
    randomness = _Counting()
    held = Held(kind.column([0 if kind.listed else kind.read("")]), np.full(1, -1))
    protocol.mechanism.perturb(protocol.encoding.encode([held], randomness), randomness)
    return randomness.draws


def _lasting(once: Mechanism, question: Question, keys: Mapping[str, Any], users: int, *, plain: bool) -> str:
    """Say "no" if a lasting_epsilon is impossible, "links" if responses outnumber users and identify them, or "yes"."""
    lasting = {"lasting_epsilon": min(2 * keys["epsilon"], MAX_EPSILON)}
    try:
        build_protocol(question.spec({**lasting, **keys}, plain=plain))
    except ValueError:
        return "no"
    return "links" if once.links(users) else "yes"
