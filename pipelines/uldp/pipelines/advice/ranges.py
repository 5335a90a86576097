"""Of a number: how far shares of ranges would be from the truth, by each mechanism that knows shares of bins.

Which is better depends on the shape. An estimator that smooths has less noise than others, and a bias where a few
numbers are much more frequent than their neighbours. No formula tells that beforehand, so windows are simulated.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.numbers.outputs import Shape, SimulatesBins
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.budget import protects
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.specs.specfile import SpecError, read_spec

#: The windows of a simulation, and the ranges of each kind in each.
_WINDOWS, _RANGES = 8, 1000
#: Short ranges have at most this part of the bins.
_SHORT = 1 / 32
#: The bins unless the spec has fewer, and the most that estimators which smooth take.
_BINS = 1024
#: The spikes of the shape that has some.
_SPIKES = 16


@dataclass(frozen=True)
class RangeErrors:
    """The roots of the mean squared errors of shares of ranges, with random ends and of short ones."""

    random: float
    short: float


@dataclass(frozen=True)
class _Candidate:
    """A mechanism: the keys of a spec with it, and its decoder."""

    keys: Mapping[str, Any]
    decoder: SimulatesBins

    @property
    def name(self) -> str:
        return str(self.keys["mechanism"]["name"])

    @property
    def title(self) -> str:
        return f"{self.name} with {self.decoder.bins_estimator}"


def number_spec(path: Path, below: Path | None) -> CollectionSpec | None:
    """Read a spec; None if it is not one of a number; ValueError if it is invalid."""
    spec = CollectionSpec.load(path, below=below)
    return spec if spec.domain.kind == Number.name else None


def range_advice(path: Path, spec: CollectionSpec, truth: Path | None, epsilon: float, users: int) -> str:
    """Return how large the errors of ranges are under each mechanism, and the spec with the better one."""
    bins = min(getattr(spec.mechanism, "bins", None) or _BINS, _BINS)
    lines = [f"{bins:,} bins, epsilon {epsilon:g}, {users:,} users; errors of shares of ranges, in points", ""]
    candidates = sorted(_candidates(path, bins, epsilon), key=lambda each: each.decoder.smooths)
    if len(candidates) < 2:
        names = ", ".join(each.name for each in candidates) or "none"
        raise RequestError(f"{path}: fewer than two mechanisms know the shares of bins of this number: {names}")
    best = candidates[0]
    for what, shape in _shapes(spec, truth, bins):
        found = [(range_errors(each.decoder, shape, bins, users), each) for each in candidates]
        (least, better), (next_least, _), *_ = sorted(found, key=lambda pair: pair[0].random)
        if truth is not None:
            best = better
        lines += [f"truth: {what}", "mechanism  estimator  random ends  up to 1/32 of the range"]
        lines += [_row(each, errors) for errors, each in found]
        times = (next_least.random / least.random) ** 2
        lines += [f"{better.title} has {times:.2g} times less squared error for ranges with random ends", ""]
    if truth is None:
        unbiased = f"intervals of {best.name} are around unbiased estimates whatever the shape"
        lines += [f"{unbiased}; give the shape by --truth, if you know it", ""]
    smooth = " and ".join(each.name for each in candidates if each.decoder.smooths)
    lines += [
        f"all give ranges and quantiles with intervals, those of {smooth} around smooth fits",
        "",
        f"# {best.name}, the {'safer' if truth is None else 'better'} of both; check it with uldp check",
        yaml.safe_dump(dict(best.keys), sort_keys=False, default_flow_style=None, width=100).rstrip(),
    ]
    return "\n".join(lines)


def _row(candidate: _Candidate, errors: RangeErrors) -> str:
    name, estimator = candidate.name, candidate.decoder.bins_estimator
    return f"{name:<9}  {estimator:<9}  {100 * errors.random:>11.3g}  {100 * errors.short:>23.3g}"


def range_errors(decoder: SimulatesBins, shape: Shape, bins: int, users: int) -> RangeErrors:
    """Simulate windows, and return the errors of ranges from those of bins."""
    rng, longest = np.random.default_rng(0), max(int(bins * _SHORT), 1)
    squares = np.zeros(2)
    for _ in range(_WINDOWS):
        below = np.concatenate([[0.0], np.cumsum(decoder.simulate_bins(shape, users, rng))])
        ends = rng.integers(0, bins + 1, (2, _RANGES))
        first = rng.integers(0, bins - longest + 1, _RANGES)
        short = first, first + rng.integers(1, longest + 1, _RANGES)
        squares += [((below[end] - below[begin]) ** 2).mean() for begin, end in (ends, short)]
    random, of_short = np.sqrt(squares / _WINDOWS).tolist()
    return RangeErrors(random, of_short)


def _shapes(spec: CollectionSpec, truth: Path | None, bins: int) -> Iterator[tuple[str, Shape]]:
    """Yield the truth of a file, or without one a smooth shape and one with spikes; each with what it is."""
    if truth is not None:
        known, number = Truth.load(truth, spec), spec.variables[""].of_kind(Number)
        values = np.asarray(known.columns[0].values, dtype=np.float64)
        yield str(truth), Shape((values - number.low) / (number.high - number.low), known.probabilities)
        return
    middles: Floats = (np.arange(bins, dtype=np.float64) + 0.5) / bins
    smooth = middles * (1 - middles) ** 4  # Beta(2, 5)
    smooth /= smooth.sum()
    yield "a smooth shape, Beta(2, 5)", Shape(middles, smooth)
    spiky = smooth / 2
    np.add.at(spiky, np.random.default_rng(0).integers(0, bins, _SPIKES), 0.5 / _SPIKES)
    yield f"the same, but half of the users hold one of {_SPIKES} numbers", Shape(middles, spiky)


def _candidates(path: Path, bins: int, epsilon: float) -> Iterator[_Candidate]:
    """Yield the mechanisms that know the shares of bins of a number."""
    given = read_spec(path)
    assert isinstance(given, dict)  # the spec is valid
    lasting = {key: given["mechanism"][key] for key in ("lasting_epsilon",) if key in given["mechanism"]}
    alone = {key: given[key] for key in ("collection", "version", "domain", "window")}
    for name in mechanism_names():
        model = family(name)
        if not model.takes(Number.name) or "bins" not in model.model_fields:
            continue
        mechanism = {"name": name, "epsilon": epsilon, "bins": bins} | lasting
        try:
            spec = CollectionSpec.parse(alone | {"mechanism": mechanism}, base=path.parent)
        except SpecError:
            continue  # it is for fewer bins, or keeps no responses
        if isinstance(decoder := build_protocol(spec).decoder, SimulatesBins):
            estimator = decoder.bins_estimator
            keys = given | {
                "mechanism": mechanism,
                "estimator": estimator if estimator == "auto" else ["empirical", estimator],
            }
            if not spec.mechanism.bins_of(spec.variables[""].kind):
                keys.pop("ranges", None)  # it has ranges in answers, and not in windows
            yield _Candidate(keys, decoder)


def asked(
    epsilon: float | None, users: int | None, error: float | None, what: str = "of a number", found: str = "of ranges"
) -> tuple[float, int]:
    """Return what errors follow from; RequestError if something else is given, or no spec has such an epsilon."""
    if epsilon is None or users is None or error is not None:
        raise RequestError(f"{what}, give --epsilon and --users; what is found are errors {found}")
    try:
        protects(epsilon)
    except ValueError as mistake:
        raise RequestError(f"--epsilon {mistake} (got {epsilon:g})") from mistake
    return epsilon, users
