"""What an estimate costs: each estimator from the counts of one window, the exact maximum against EM, and its files.

    python -m benchmarks.estimators

The size is that of the paper's largest experiment (section 6.2, nine attributes of the US Census): |X| = 12,800,
|X_S| = 2,432, n = 240,000, epsilon = 6. There EM on uRR took 1,258 s, from the reports.
"""

import io
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

import fastavro
import numpy as np

from benchmarks.rows import Row, clock, in_turn, print_table, timed
from uldp.mechanisms.decoders.pure import share_estimate
from uldp.mechanisms.estimators.by_name import empirical, norm_sub, threshold
from uldp.mechanisms.estimators.likelihood import em, exact_mle
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import Schema, parse_schema
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import INTERVAL_LEVEL, Table, TableName
from uldp.transforms.io.durable_files import container_bytes
from uldp.transforms.io.results.pane_files import ESTIMATES, STATISTICS, EncodedPane, pane_files

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
    pum = Pum(mechanism.sensitive, (), np.empty((0, SIZE)), np.empty(0))

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
    calls = {call.__name__: partial(timed, partial(call, channel, counts, USERS)) for call in estimators}
    calls["interval"] = partial(timed, lambda: share_estimate(law_of(channel), counts, USERS).interval(INTERVAL_LEVEL))
    calls["stderr"] = partial(timed, lambda: pum.stderr(share_estimate(law_of(channel), counts, USERS)))
    seconds = in_turn(calls, REPEAT)
    for label, taken in seconds.items():
        yield Row("estimators", label, 1, taken, remark=remarks.get(label, ""))
    yield from _writing(counts, exact, pum.stderr(share_estimate(law_of(channel), counts, USERS)))
    both = seconds[exact_mle.__name__] + seconds["interval"]
    yield Row("estimators", "exact_mle and interval", 1, both)
    steps = EM_STEPS // 100 if quick else EM_STEPS
    began = clock()
    climbed = em(channel, counts, USERS, tolerance=0, max_iterations=steps)
    taken = clock() - began
    yield Row("estimators", f"em, {steps:,} steps", 1, taken, remark=quality(climbed))


#: The numbers of the two files of a pane in the form that they had before.
_LISTS = {
    name: parse_schema(
        {
            "type": "record",
            "name": "Lists",
            "fields": [{"name": name, "type": {"type": "array", "items": item}} for name, item in fields.items()],
        }
    )
    for name, fields in {
        "statistic": {"counts": "long"},
        "estimate": {"counts": "long", "shares": "double", "stderr": "double"},
    }.items()
}


def _body(schema: Schema, numbers: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, numbers)
    return out.getvalue()


def _writing(cells: Counts, shares: Floats, stderr: Floats) -> Iterator[Row]:
    """Measure how long a pane takes from its arrays to the bytes of its files, packed and as lists of numbers."""
    pane, accounting = Pane(PaneKind.ON_TIME, 0), Accounting(USERS, USERS)
    statistic = Statistic("census", 1, "0" * 16, 0, 3_600_000, pane, accounting, cells=cells)
    table = Table(TableName.SHARE, shares, stderr, USERS, shape=shares.shape, whole=True)
    named: dict[str, Any] = {"mechanism": "urr", "epsilon": EPSILON, "estimator": "mle", "tables": (table,)}
    estimate = Estimate(**statistic.header(), **named)

    def packed() -> int:
        of_counts = pane_files(STATISTICS, [EncodedPane.encode(STATISTICS, statistic)], None)
        of_estimates = pane_files(ESTIMATES, [EncodedPane.encode(ESTIMATES, estimate)], estimate.estimator)
        return sum(len(content) for _, content in chain(of_counts, of_estimates))

    def lists() -> int:
        numbers = {"counts": cells.tolist(), "shares": shares.tolist(), "stderr": stderr.tolist()}
        return sum(len(container_bytes(name, [_body(schema, numbers)])) for name, schema in _LISTS.items())

    calls = {"files of a pane": packed, "files of a pane, as lists": lists}
    seconds = in_turn({label: partial(timed, call) for label, call in calls.items()}, REPEAT)
    for label, call in calls.items():
        yield Row("estimators", label, 1, seconds[label], remark=f"{call():,} bytes")


if __name__ == "__main__":
    print_table(rows())
