"""Of a number: how far shares of ranges would be from the truth, by ``tree`` and by ``block`` with ``ems``.

Which is better depends on the shape. ``ems`` smooths, so that it has less noise than a tree, and a bias where a few
numbers are much more frequent than their neighbours. No formula tells that beforehand, so windows are simulated.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import yaml
from numpy.random import Generator

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.block.distribution import Distribution
from uldp.mechanisms.families.block.randomizer import Block
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.specfile import read_spec

#: The windows of a simulation, and the ranges of each kind in each.
_WINDOWS, _RANGES = 8, 1000
#: Short ranges have at most this part of the bins.
_SHORT = 1 / 32
#: The bins unless the spec has some, and the most that ``ems`` takes.
_BINS = 1024
#: The spikes of the shape that has some.
_SPIKES = 16


@runtime_checkable
class Simulates(Protocol):
    """A decoder that draws windows without reports."""

    def simulate(self, r: Floats, n: int, estimator: str, rng: Generator) -> Floats:
        """Return the errors of the published shares of bins in a window of n reports."""


@dataclass(frozen=True, eq=False)
class Shape:
    """A distribution of numbers.

    Attributes:
        name: What it is.
        positions: Shape (m,): where the numbers are, in bins from the lower end of the range.
        shares: Shape (m,): the share of users who hold each.
    """

    name: str
    positions: Floats
    shares: Floats

    def of_bins(self, bins: int) -> Floats:
        """Return the share of users in each bin."""
        at = np.minimum(self.positions.astype(np.int64), bins - 1)
        return np.bincount(at, self.shares, minlength=bins).astype(np.float64)

    def of_points(self, bins: int) -> Floats:
        """Return the expected share of users at each point of the grid, to which a device of ``block`` rounds."""
        below = np.minimum(self.positions.astype(np.int64), bins - 1)
        over = self.positions - below
        points = np.bincount(below, self.shares * (1 - over), minlength=bins + 1)
        return np.asarray(points + np.bincount(below + 1, self.shares * over, minlength=bins + 1))


@dataclass(frozen=True)
class RangeErrors:
    """The roots of the mean squared errors of shares of ranges, with random ends and of short ones."""

    random: float
    short: float


def number_spec(path: Path, below: Path | None) -> CollectionSpec | None:
    """Read a spec; None if it is not one of a number.

    Raises:
        ValueError: if the spec is invalid.
    """
    spec = CollectionSpec.load(path, below=below)
    return spec if spec.domain.kind == Number.name else None


def range_advice(path: Path, spec: CollectionSpec, truth: Path | None, epsilon: float, users: int) -> str:
    """Return how large the errors of ranges are under each mechanism, and the spec with the better one."""
    bins = min(getattr(spec.mechanism, "bins", None) or _BINS, _BINS)
    lines = [f"{bins:,} bins, epsilon {epsilon:g}, {users:,} users; errors of shares of ranges, in points", ""]
    best = "tree"
    for shape in _shapes(spec, truth, bins):
        tree, block = (errors(shape, bins, epsilon, users) for errors in (tree_errors, block_errors))
        ratio = (tree.random / block.random) ** 2
        best = "block" if ratio > 1 else "tree"
        better, times = ("block with ems", ratio) if ratio > 1 else ("tree with auto", 1 / ratio)
        lines += [
            f"truth: {shape.name}",
            "mechanism  estimator  random ends  up to 1/32 of the range",
            _row("tree", "auto", tree),
            _row("block", "ems", block),
            f"{better} has {times:.2g} times less squared error for ranges with random ends",
            "",
        ]
    if truth is None:
        best = "tree"
        lines += ["tree has no bias whatever the shape; give the shape by --truth, if you know it", ""]
    lines += [
        "both give ranges and quantiles with intervals, those of block around smooth fits; block gives the mean too",
        "",
        f"# {best}, the {'safer' if truth is None else 'better'} of both; check it with uldp check",
        yaml.safe_dump(_keys(path, best, bins, epsilon), sort_keys=False, default_flow_style=None, width=100).rstrip(),
    ]
    return "\n".join(lines)


def _row(name: str, estimator: str, errors: RangeErrors) -> str:
    return f"{name:<9}  {estimator:<9}  {100 * errors.random:>11.3g}  {100 * errors.short:>23.3g}"


def tree_errors(shape: Shape, bins: int, epsilon: float, users: int) -> RangeErrors:
    """Return the errors of ``tree`` with ``auto``."""
    mechanism = {"name": "tree", "epsilon": epsilon}
    keys = {"collection": "advised", "version": 1, "domain": {"size": bins}, "window": {"size": "1d"}}
    decoder = build_protocol(CollectionSpec.parse(keys | {"mechanism": mechanism})).decoder
    assert isinstance(decoder, Simulates)
    shares = shape.of_bins(bins)
    return _errors(bins, lambda rng: decoder.simulate(shares, users, "auto", rng))


def block_errors(shape: Shape, bins: int, epsilon: float, users: int) -> RangeErrors:
    """Return the errors of ``block`` with ``ems``."""
    block, shares = Block(epsilon, bins), shape.of_bins(bins)
    law = block.law(shape.of_points(bins))

    def errors(rng: Generator) -> Floats:
        fitted = Distribution(block, rng.multinomial(users, law / law.sum()), users)
        return fitted.shares().values - shares

    return _errors(bins, errors)


def _errors(bins: int, errors: Callable[[Generator], Floats]) -> RangeErrors:
    """Simulate windows, and return the errors of ranges from those of bins."""
    rng, longest = np.random.default_rng(0), max(int(bins * _SHORT), 1)
    squares = np.zeros(2)
    for _ in range(_WINDOWS):
        below = np.concatenate([[0.0], np.cumsum(errors(rng))])
        ends = rng.integers(0, bins + 1, (2, _RANGES))
        first = rng.integers(0, bins - longest + 1, _RANGES)
        short = first, first + rng.integers(1, longest + 1, _RANGES)
        squares += [((below[end] - below[begin]) ** 2).mean() for begin, end in (ends, short)]
    random, of_short = np.sqrt(squares / _WINDOWS).tolist()
    return RangeErrors(random, of_short)


def _shapes(spec: CollectionSpec, truth: Path | None, bins: int) -> Iterator[Shape]:
    """Yield the truth of a file, or without one a smooth shape and one with spikes."""
    if truth is not None:
        known, number = Truth.load(truth, spec), spec.variables[""].of_kind(Number)
        values = np.asarray(known.columns[0].values, dtype=np.float64)
        yield Shape(str(truth), (values - number.low) / (number.high - number.low) * bins, known.probabilities)
        return
    middles: Floats = np.arange(bins, dtype=np.float64) + 0.5
    x = middles / bins
    smooth = x * (1 - x) ** 4  # Beta(2, 5)
    smooth /= smooth.sum()
    yield Shape("a smooth shape, Beta(2, 5)", middles, smooth)
    spiky = smooth / 2
    np.add.at(spiky, np.random.default_rng(0).integers(0, bins, _SPIKES), 0.5 / _SPIKES)
    yield Shape(f"the same, but half of the users hold one of {_SPIKES} numbers", middles, spiky)


def _keys(path: Path, name: str, bins: int, epsilon: float) -> dict[str, Any]:
    """Return the keys of the spec with a mechanism."""
    keys = read_spec(path)
    assert isinstance(keys, dict)  # the spec is valid
    lasting = {key: keys["mechanism"][key] for key in ("lasting_epsilon",) if key in keys["mechanism"]}
    mechanism = {"name": name, "epsilon": epsilon, "bins": bins} | lasting
    if name == "block":  # which has ranges in answers, and not in windows
        keys = {key: value for key, value in keys.items() if key != "ranges"}
    return keys | {"mechanism": mechanism, "estimator": ["empirical", "ems"] if name == "block" else "auto"}


def asked(
    epsilon: float | None, users: int | None, error: float | None, what: str = "of a number", found: str = "of ranges"
) -> tuple[float, int]:
    """Return what errors follow from: of ranges of a number, or others.

    Raises:
        RequestError: if something else is given.
    """
    if epsilon is None or users is None or error is not None:
        raise RequestError(f"{what}, give --epsilon and --users; what is found are errors {found}")
    return epsilon, users
