"""The losses of a mechanism and an estimator: total variation and squared error, measured and expected.

The paper means over realizations: of the total variation, half of the l1 loss, in Figures 5 to 8, and of the squared l2
loss, its MSE, in Figures 10 to 13.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.bit_likelihood import maximize_bits
from benchmarks.paper.populations import Population, protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.inference.forecast import draw_counts
from uldp.schemas.arrays import Floats, Mask

#: The names of the paper, and those of specs; uBD is newer.
MECHANISMS = {"RR": "rr", "RAP": "sue", "uRR": "urr", "uRAP": "urap", "uBD": "ubd"}
NO_PRIVACY = "no privacy"
COMPARED: Mapping[str, str] = MECHANISMS | {NO_PRIVACY: "identity"}
#: Estimators of the paper, then ours: from counts alone.
FROM_COUNTS: Mapping[str, str] = {"emp": "empirical", "emp+thr": "threshold", "wls": "wls", "auto": "auto"}
#: The limit of EM reconstruction: from counts for randomized response, and from the reports themselves for bits.
MAXIMUM = "EM"


@dataclass(frozen=True)
class Loss:
    """A point of a figure.

    Attributes:
        population: What is estimated.
        x: The abscissa of the figure.
        mechanism: The name in the paper, or of a spec.
        estimator: The name in the paper, or of a spec; MAXIMUM for the maximum of the likelihood, the limit of EM.
        expected: The total variation that the paper's formulas (12) or (17) give for the unbiased estimate, or NaN.
        variation: The mean total variation.
        squared: The mean squared l2 loss.
        realizations: The number of realizations.
    """

    population: str
    x: float
    mechanism: str
    estimator: str
    expected: float
    variation: float
    squared: float
    realizations: int


@dataclass(frozen=True)
class Effort:
    """How often each point is measured.

    Attributes:
        realizations: Realizations of counts, drawn without reports.
        of_reports: Realizations of reports, for the maximum of the likelihood of bits; 0 leaves it out.
        quick: Whether to measure two points of each curve alone.
    """

    realizations: int = 10
    of_reports: int = 1
    quick: bool = False

    def some(self, points: Sequence[float]) -> Sequence[float]:
        """Return all points, or the two in the middle."""
        middle = len(points) // 2
        return points[max(middle - 1, 0) : middle + 1] if self.quick else points


def losses(
    population: Population, x: float, epsilon: float, effort: Effort, mechanisms: Mapping[str, str] = COMPARED
) -> Iterator[Loss]:
    """Measure mechanisms; by default all of them, and the error without privacy.

    Args:
        population: The truth.
        x: The abscissa.
        epsilon: The budget of a report.
        effort: The realizations.
        mechanisms: Some of ``COMPARED``.
    """
    for name, mechanism in mechanisms.items():
        built = protocol(population, {"name": mechanism}, epsilon)
        assert isinstance(built.decoder, PureDecoder)
        channel = built.decoder.channel
        rng = np.random.default_rng(5)
        windows = [draw_counts(channel, population.p, population.users, rng) for _ in range(effort.realizations)]
        expected = expected_variation(name, population, epsilon)
        row = partial(Loss, population.name, x, name)
        if name == NO_PRIVACY:
            yield row(
                "emp", expected, *_mean(population.p, [channel.unbiased(each, population.users) for each in windows])
            )
            continue
        fits: dict[str, list[Floats]] = {
            label: [estimate_intermediate(estimator, channel, each, population.users) for each in windows]
            for label, estimator in FROM_COUNTS.items()
        }
        if channel.one_symbol:
            fits[MAXIMUM] = [exact_mle(channel, each, population.users) for each in windows]
        elif isinstance(built.mechanism, UnaryEncoding) and effort.of_reports:
            fits[MAXIMUM] = [
                _maximum_of_reports(built.mechanism, population, seed) for seed in range(effort.of_reports)
            ]
        for label, estimates in fits.items():
            yield row(label, expected, *_mean(population.p, estimates))


def _maximum_of_reports(mechanism: UnaryEncoding, population: Population, seed: int) -> Floats:
    rng = np.random.default_rng([7, seed])
    symbols = rng.choice(len(population.p), population.users, p=population.p)
    return maximize_bits(mechanism, mechanism.perturb(symbols, rng)).distribution


def _mean(p: Floats, estimates: Sequence[Floats]) -> tuple[float, float, int]:
    errors = np.array(estimates) - p
    return float(np.abs(errors).sum(axis=1).mean() / 2), float((errors**2).sum(axis=1).mean()), len(estimates)


def expected_variation(name: str, population: Population, epsilon: float) -> float:
    """Return half of the paper's approximate l1 loss of the unbiased estimate, or NaN if it has no formula.

    Source: Murakami & Kawamoto, Propositions 6 (eq. 12) and 9 (eq. 17). If all values are sensitive, they are those of
    RR and RAPPOR.
    """
    formula = _FORMULAS.get(name)
    if formula is None:
        return math.nan
    sensitive = population.sensitive if name.startswith("u") else np.ones_like(population.sensitive)
    return formula(population.p, sensitive, population.users, epsilon) / 2


def _randomized_response(p: Floats, sensitive: Mask, n: int, epsilon: float) -> float:
    u = math.expm1(epsilon)
    v = (sensitive.sum() + u) / u
    on_sensitive = np.sqrt((p + 1 / u) * (v - p - 1 / u))
    return math.sqrt(2 / (n * math.pi)) * float(np.where(sensitive, on_sensitive, np.sqrt(p * (v - p))).sum())


def _rappor(p: Floats, sensitive: Mask, n: int, epsilon: float) -> float:
    u = math.expm1(epsilon / 2)
    v = math.exp(epsilon / 2) / u
    return math.sqrt(2 / (n * math.pi)) * float(
        np.where(sensitive, np.sqrt((p + 1 / u) * (v - p)), np.sqrt(p * (v - p))).sum()
    )


_FORMULAS: Mapping[str, Callable[[Floats, Mask, int, float], float]] = {
    "RR": _randomized_response,
    "uRR": _randomized_response,
    "RAP": _rappor,
    "uRAP": _rappor,
}
