"""What an estimate costs: each estimator from the counts of one window, and the exact maximum against EM.

    python -m benchmarks.estimators

The size is that of the paper's largest experiment (section 6.2, nine attributes of the US Census): |X| = 12,800,
|X_S| = 2,432, n = 240,000, epsilon = 6. There EM on uRR took 1,258 s, from the reports.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.rows import Row, clock, in_turn, print_table, timed
from uldp.mechanisms.estimators import empirical, norm_sub, threshold
from uldp.mechanisms.likelihood import em, exact_mle
from uldp.mechanisms.pum import Pum
from uldp.mechanisms.randomized_response import RandomizedResponse
from uldp.schemas.arrays import Floats

SIZE, SENSITIVE, USERS, EPSILON = 12_800, 2_432, 240_000, 6.0
REPEAT, EM_STEPS = 21, 5_000


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure each estimator, the intervals, and EM; ``quick`` takes few steps of EM."""
    rng = np.random.default_rng(7)
    truth: Floats = rng.dirichlet(np.full(SIZE, 0.05))
    mechanism = RandomizedResponse(np.arange(SIZE) < SENSITIVE, EPSILON)
    channel = mechanism.channel
    counts = mechanism.statistic(mechanism.perturb(rng.choice(SIZE, USERS, p=truth), rng))
    exact = exact_mle(channel, counts, USERS)
    pum = Pum(mechanism.sensitive, (), np.empty((0, SIZE)))

    def log_likelihood(r: Floats) -> float:
        seen = counts > 0
        with np.errstate(divide="ignore"):  # an estimate that rules out what was reported has likelihood 0
            return float(counts[seen] @ np.log(channel.support_probability(r)[seen]))

    def quality(r: Floats) -> str:
        l1 = f"l1 to the truth {np.abs(r - truth).sum():.4f}"
        # The likelihood is one of distributions, which the unbiased estimate is not.
        if r.min() < 0:
            return l1
        return f"{l1}, log-likelihood {log_likelihood(exact) - log_likelihood(r):.3g} below the exact maximum"

    estimators = (empirical, threshold, norm_sub, exact_mle)
    remarks = {estimator.__name__: quality(estimator(channel, counts, USERS)) for estimator in estimators}
    calls = {
        call.__name__: partial(timed, partial(call, channel, counts, USERS))
        for call in (*estimators, pum.stderr, pum.confidence_interval)
    }
    seconds = in_turn(calls, REPEAT)
    for label, taken in seconds.items():
        yield Row("estimators", label, 1, taken, remark=remarks.get(label, ""))
    both = seconds[exact_mle.__name__] + seconds[pum.confidence_interval.__name__]
    yield Row("estimators", "exact_mle and confidence_interval", 1, both)
    steps = EM_STEPS // 100 if quick else EM_STEPS
    began = clock()
    fit = em(channel, counts, USERS, tolerance=0, max_iterations=steps)
    taken = clock() - began
    yield Row("estimators", f"em, {fit.iterations:,} steps", 1, taken, remark=quality(fit.distribution))


if __name__ == "__main__":
    print_table(rows())
