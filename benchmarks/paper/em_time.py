"""The time of the maximum likelihood at the size at which the ULDP paper measures EM.

|X| = 12,800, |X_S| = 2,432, n = 240,000, epsilon = 6: section 6.2, with nine attributes of the census. The paper starts
EM at "emp+thr", and does not say when it stops. Here the maximum is exact for randomized response. For bits, the mean
log-likelihood of a report is proved to be within 1e-6 of its maximum; the start is ``wls``.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple, cast

import numpy as np

from benchmarks.bit_likelihood import GAP, maximize_bits
from benchmarks.paper.losses import MECHANISMS
from benchmarks.paper.populations import census, protocol
from uldp.mechanisms.estimators.likelihood import exact_mle
from uldp.mechanisms.families.unary_encoding.randomizer import UnaryEncoding
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Packed

USERS, EPSILON = 240_000, 6.0
#: Seconds of EM in the paper, on an Intel Xeon E5-2620 v3.
PAPER = {"RR": 3121.0, "RAP": 5225.0, "uRR": 1258.0, "uRAP": 1073.0}


class Taken(NamedTuple):
    """What an estimate took.

    Attributes:
        mechanism: The name in the paper.
        seconds: Of the processor.
        paper: Seconds of EM in the paper.
        gap: How far the mean log-likelihood of a report is at most below its maximum.
        variation: Total variation to the truth.
    """

    mechanism: str
    seconds: float
    paper: float
    gap: float
    variation: float


def measure(*, attributes: int = 9, users: int = USERS) -> Iterator[Taken]:
    """Measure each mechanism once."""
    population = census(attributes)
    for name, mechanism_name in MECHANISMS.items():
        if name not in PAPER:
            continue
        mechanism = protocol(population, {"name": mechanism_name}, EPSILON).mechanism
        assert isinstance(mechanism, PureMechanism)
        rng = np.random.default_rng(9)
        symbols = rng.choice(len(population.p), users, p=population.p)
        payloads = mechanism.perturb(symbols, rng)
        began = time.process_time()
        if isinstance(mechanism, UnaryEncoding):
            fit = maximize_bits(mechanism, cast(Packed, payloads))
            estimate, gap = fit.distribution, fit.gap
            assert gap <= GAP
        else:
            estimate, gap = exact_mle(mechanism.channel, mechanism.statistic(payloads), users), 0.0
        seconds = time.process_time() - began
        yield Taken(name, seconds, PAPER[name], gap, float(np.abs(estimate - population.p).sum() / 2))


def table(rows: list[Taken]) -> list[str]:
    """Return a Markdown table."""
    return [
        "| mechanism | seconds | EM in the paper, seconds | below the maximum by at most | TV |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(f"| {r.mechanism} | {r.seconds:.3g} | {r.paper:,.0f} | {r.gap:.1g} | {r.variation:.4f} |" for r in rows),
    ]
