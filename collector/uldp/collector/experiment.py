"""Experiments in Python alone: a mechanism by its name, without a collection, a version, windows or files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import Guarantee
from uldp.schemas.arrays import Counts, Floats, Payloads, Values
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds.kind import Column, Value
from uldp.schemas.table import Table

#: The seed of an experiment, its generator, or None for one that no other experiment has.
Seed = int | Generator | None


class Expected(NamedTuple):
    """The errors to expect of the published shares of a protocol.

    Attributes:
        l1: The expected l1 distance between the shares and the truth, at most 2.
        l2: The expected l2 distance.
        half_width: Half of the mean width of a 95 % interval.
        l1_stderr: The standard error of ``l1`` over the simulated windows: protocols that differ by less are alike.
    """

    protocol: "Protocol"
    l1: float
    l2: float
    half_width: float
    l1_stderr: float


@dataclass(frozen=True, eq=False)
class Sample:
    """What the devices of a simulation sent: cells that count their payloads."""

    protocol: "Protocol"
    payloads: Payloads  # one of each device, in the order of the values
    counts: Counts  # the statistic of the payloads; see ``Protocol.counts``

    def estimate(self, estimator: str | None = None) -> Table:
        """Return what ``Protocol.estimate`` returns of these counts."""
        return self.protocol.estimate(self.counts, len(self.payloads), estimator)

    def tables(self, estimator: str | None = None) -> tuple[Table, ...]:
        """Return what ``Protocol.tables`` returns of these counts."""
        return self.protocol.tables(self.counts, len(self.payloads), estimator)


@dataclass(frozen=True, eq=False)
class Protocol:
    """A mechanism over a domain: values become payloads, payloads become counts, and counts become estimates.

    It is for experiments: a generator of NumPy draws the noise, from which others can compute it. Real devices use
    ``uldp.Device``, whose noise is cryptographic.
    """

    spec: CollectionSpec  # the mechanism, the domain and the tags, of one variable; its window means nothing

    def __post_init__(self) -> None:
        if len(self.spec.variables) != 1:
            raise RequestError("an experiment has one variable; take that of one attribute in place of the record")

    def __str__(self) -> str:
        given = self.spec.mechanism.model_dump(exclude_unset=True, exclude={"name"})
        return f"{self.spec.mechanism.name}({', '.join(f'{name}={value}' for name, value in given.items())})"

    def __repr__(self) -> str:
        return f"<{self} of {self.spec.size} values>"

    @cached_property
    def steps(self) -> LdpProtocol:
        """The encoding, the mechanism and the decoder."""
        return build_protocol(self.spec)

    @property
    def guarantee(self) -> Guarantee:
        """The promise to a user about one report."""
        return self.steps.guarantee

    def perturb(self, values: npt.ArrayLike, *, hidden: npt.ArrayLike | None = None, seed: Seed = None) -> Payloads:
        """Return the payloads of devices that hold these values.

        Args:
            values: One for each of n devices, as ``uldp.Device.report`` takes them, or labels; of sets, a list of
                indices for each. Of an array of two dimensions or more, rows as in ``Held.values``.
            hidden: The tag behind which each device hides its value, by name or index; "" or -1 for none.

        Returns:
            Shape (n,) of symbols, or (n, bytes).

        Raises:
            ValueError: if a value is not in the domain, or a tag not in the spec.
            TypeError: if a value is of another type than the domain's, such as a number for an index.
        """
        held, names = self._column(values), [tag.name for tag in self.spec.tags]
        tags = _positions(np.asarray(-1 if hidden is None else hidden), names)
        rng = np.random.default_rng(seed)
        return self.steps.perturb([Held(held, np.broadcast_to(tags, len(held)))], rng)

    def counts(self, payloads: npt.ArrayLike) -> Counts:
        """Return the statistic of payloads, as how many support each symbol; ValueError if one is impossible."""
        form = self.steps.mechanism.form
        sent: Payloads = np.asarray(payloads, np.uint8) if form.symbols is None else np.asarray(payloads, np.uint32)
        if not self.steps.mechanism.possible(sent).all():
            raise RequestError(f"{self.spec.mechanism.name} sends no such payload; counts takes what perturb gives")
        return self.steps.mechanism.statistic(sent)

    def estimate(self, counts: npt.ArrayLike, n: int, estimator: str | None = None) -> Table:
        """Return the first of ``tables``: the shares of values, or the mean of numbers."""
        return self.tables(counts, n, estimator)[0]

    def tables(self, counts: npt.ArrayLike, n: int, estimator: str | None = None) -> tuple[Table, ...]:
        """Return what an estimator makes of the counts of n reports, with intervals.

        Args:
            counts: What ``counts`` gives, or its sum over groups of reports.
            estimator: Its name; by default the first of the mechanism.

        Raises:
            ValueError: if no n reports give these counts, or the mechanism has no such estimator.
        """
        cells, decoder = np.asarray(counts, dtype=np.int64), self.steps.decoder
        decoder.check(cells, n)
        return decoder.tables(cells, n, decoder.estimators[0] if estimator is None else estimator)

    def simulate(self, values: npt.ArrayLike, *, hidden: npt.ArrayLike | None = None, seed: Seed = None) -> Sample:
        """Perturb values and count their payloads; see ``perturb``."""
        payloads = self.perturb(values, hidden=hidden, seed=seed)
        return Sample(self, payloads, self.counts(payloads))

    def _column(self, values: npt.ArrayLike) -> Column:
        """Return what devices hold as ``Held`` has it; values are checked as ``uldp.Device`` checks them."""
        (variable,) = self.spec.variables.values()
        if hasattr(values, "__array__"):  # a column of a data frame, too
            values = np.asarray(values)
        if isinstance(values, np.ndarray) and values.ndim > 1:
            return values  # sets, pairs or rankings as columns, which the encoding checks
        if not isinstance(values, Sequence | np.ndarray) or isinstance(values, str):
            raise RequestError("give a list or an array of values, one for each device")
        kind = variable.kind

        def checked(value: object) -> Value:
            return kind.check(variable.index(value) if kind.listed and isinstance(value, str) else value, "")

        if isinstance(values, np.ndarray):
            found, at = np.unique(values, return_inverse=True)
            return kind.column([checked(value) for value in found.tolist()])[at]
        return kind.column([checked(value) for value in values])


def _positions(given: npt.NDArray[Any], names: Sequence[str]) -> Values:
    """Return tags as their positions; -1 for the name ""."""
    if given.dtype.kind != "U":
        return given.astype(np.int64)
    known = {"": -1} | {name: i for i, name in enumerate(names)}
    found, at = np.unique(given, return_inverse=True)
    if any(name not in known for name in found.tolist()):
        raise RequestError(f"a tag is none of {', '.join(names) or 'the tags, for there are none'}")
    return np.array([known[name] for name in found.tolist()], dtype=np.int64)[at].reshape(given.shape)


def protocol(
    mechanism: str,
    *,
    size: int | None = None,
    domain: Mapping[str, object] | Sequence[str] | None = None,
    sensitive: str | Sequence[int | str] = "all",
    tags: Sequence[str | Mapping[str, object]] = (),
    **parameters: object,
) -> Protocol:
    """Return a mechanism over a domain.

    >>> protocol("rr", size=2, epsilon=1.0).estimate([600, 400], 1000, "empirical").values.round(3).tolist()
    [0.716, 0.284]

    Args:
        size: The number of values, 0 to size - 1; or give the domain.
        domain: Labels, or the domain as a spec has it: ``{"number": {"low": 0, "high": 100}}``.
        sensitive: The values that the mechanism protects: "all", or indices or labels.
        tags: Tags by which users hide values: names, or tags as a spec has them.
        parameters: The mechanism's, as in a spec: ``epsilon``, ``theta``, ...

    Raises:
        SpecError: with a line for each problem.
    """
    if (size is None) == (domain is None):
        raise RequestError("give the size of the domain, or the domain: size=100, or domain=['never', 'often']")
    if domain is not None and not isinstance(domain, Mapping):
        if not all(isinstance(label, str) for label in domain):
            raise RequestError("labels are text, such as domain=['18', '19']; size=2 is for the values 0 and 1")
        domain = {"labels": list(domain)}
    spec = CollectionSpec.parse(
        {
            "collection": "experiment",
            "version": 1,
            "domain": {"size": size} if domain is None else dict(domain),
            "sensitive": sensitive if isinstance(sensitive, str) else list(sensitive),
            "mechanism": {"name": mechanism, **parameters},
            "tags": [{"name": tag} if isinstance(tag, str) else dict(tag) for tag in tags],
            "window": {"size": "1h"},
        },
        source=mechanism,
    )
    return Protocol(spec)


def compare(
    protocols: Sequence[Protocol], truth: npt.ArrayLike, users: int, estimator: str | None = None, *, windows: int = 30
) -> list[Expected]:
    """Return the errors to expect of the shares that protocols publish, the least l1 first, by simulation.

    In each simulated window, other users hold values of the truth. It draws counts from the law that a mechanism
    declares, which is fast, and never calls ``perturb``. Whether the code of a new mechanism follows its law is a
    question to ``Protocol.simulate`` and ``uldp verify``. ValueError if a protocol is of something else than shares of
    so many values, or a weight is below 0.

    Args:
        protocols: Protocols of shares of values, of one domain.
        truth: Shape (size,): the weights of the values, not all 0.
        estimator: Its name; by default the first of each mechanism.
        windows: How often each protocol is simulated; the seed is fixed.
    """
    weights = np.asarray(truth, dtype=np.float64)
    if weights.ndim != 1 or not weights.sum() > 0 or weights.min() < 0:
        raise RequestError("the truth is a list of weights, one for each value, 0 or more, and not all 0")
    if users < 1 or windows < 1:
        raise RequestError("users and windows are 1 or more")
    shares = weights / weights.sum()
    return sorted((_expected(each, shares, users, estimator, windows) for each in protocols), key=lambda e: e.l1)


def _expected(of: Protocol, shares: Floats, users: int, estimator: str | None, windows: int) -> Expected:
    decoder, text = of.steps.decoder, of.spec.mechanism.text
    if not decoder.needs_truth or of.steps.mechanism.held > 1:
        raise RequestError(f"{text} does not estimate shares of values, so there is nothing to compare with the truth")
    if len(shares) != of.spec.size:
        raise RequestError(f"the truth has {len(shares)} values, and the domain of {text} {of.spec.size}")
    r = np.append(shares, np.zeros(len(of.spec.tags)))
    chosen = decoder.estimators[0] if estimator is None else estimator
    return Expected(of, *decoder.errors(r, users, chosen, windows))
