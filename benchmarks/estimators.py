"""What an estimate costs: each estimator from the counts of one window, and the exact maximum against EM.

    python -m benchmarks.estimators

The size is that of the paper's largest experiment (section 6.2, nine attributes of the US Census): |X| = 12,800,
|X_S| = 2,432, n = 240,000, epsilon = 6. There EM on uRR took 1,258 s, from the reports.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from mechanisms.estimators import empirical, norm_sub, threshold
from mechanisms.likelihood import em, exact_mle
from mechanisms.pum import Pum
from mechanisms.symbols import RandomizedResponse
from schemas.records import Floats

SIZE, SENSITIVE, USERS, EPSILON = 12_800, 2_432, 240_000, 6.0
REPEATS = 21


def median_ms(call: Callable[[], object]) -> float:
    """Time a call: the median of several, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def main() -> None:
    """Print one Markdown table."""
    rng = np.random.default_rng(7)
    truth: Floats = rng.dirichlet(np.full(SIZE, 0.05))
    mechanism = RandomizedResponse(np.arange(SIZE) < SENSITIVE, EPSILON)
    channel = mechanism.channel
    counts = mechanism.support(mechanism.perturb(rng.choice(SIZE, USERS, p=truth), rng))
    exact = exact_mle(channel, counts, USERS)
    pum = Pum(mechanism.sensitive, (), np.empty((0, SIZE)))

    def log_likelihood(r: Floats) -> float:
        seen = counts > 0
        with np.errstate(divide="ignore"):  # an estimate that rules out what was reported has likelihood 0
            return float(counts[seen] @ np.log(channel.support_probability(r)[seen]))

    print("| from the counts of one window | ms | l1 to the truth | log-likelihood below the exact maximum |")
    print("| --- | --- | --- | --- |")
    for estimator in (empirical, threshold, norm_sub, exact_mle):
        r = estimator(channel, counts, USERS)
        # The likelihood is one of distributions, which the unbiased estimate is not.
        loss = f"{log_likelihood(exact) - log_likelihood(r):.3g}" if r.min() >= 0 else ""
        milliseconds = median_ms(partial(estimator, channel, counts, USERS))
        print(f"| {estimator.__name__} | {milliseconds:.2f} | {np.abs(r - truth).sum():.4f} | {loss} |")
    began = time.perf_counter()
    fit = em(channel, counts, USERS, tolerance=0, max_iterations=20_000)
    seconds = time.perf_counter() - began
    l1 = np.abs(fit.distribution - truth).sum()
    behind = log_likelihood(exact) - log_likelihood(fit.distribution)
    print(f"| em, {fit.iterations:,} steps | {1000 * seconds:.0f} | {l1:.4f} | {behind:.3g} |")
    for quantity in (pum.stderr, pum.confidence_interval):
        print(f"| {quantity.__name__} | {median_ms(partial(quantity, channel, counts, USERS)):.2f} | | |")


if __name__ == "__main__":
    main()
