"""Answers of each time by the windows around it: those of the filter and of the smoother, beside no window's own."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from uldp.mechanisms.questions.answer import Answer, answers_by_quantity, unit_of
from uldp.mechanisms.questions.over_time import OverTime, over_time
from uldp.mechanisms.questions.shares import Shares, shares_of
from uldp.mechanisms.questions.span import Span, Spent, spent_over
from uldp.schemas.errors import RequestError
from uldp.schemas.table import INTERVAL_LEVEL, TableName

_WALK = (
    "; what is smoothed changes by a random walk or jumps, and is no estimate of a window alone: filtered by the"
    " windows up to it, smoothed by all"
)


def smoothed(spans: Sequence[Span]) -> Iterator[Answer]:
    """Yield filtered and smoothed numbers by time; RequestError if spans overlap, or fewer than three have counts."""
    if any(after.period.start < before.period.end for before, after in pairwise(spans)):
        raise RequestError("sliding windows have reports in common, so they cannot be smoothed; add --every")
    series: dict[str, list[Shares]] = defaultdict(list)
    for span in spans:
        for shares in shares_of(span):
            series[shares.attribute].append(shares)
    if not series:
        raise RequestError("no window has enough reports to smooth; add --every, so that they are summed")
    found = {
        attribute: over_time(
            [each.linear for each in of], [each.of_responses() for each in of], [each.span.period.start for each in of]
        )
        for attribute, of in series.items()
    }
    spent = spent_over([part for span in spans for part in span.spans])
    places = {(of.span.period, attribute): t for attribute, each in series.items() for t, of in enumerate(each)}
    for span in spans:
        for attribute, each in series.items():
            if (t := places.get((span.period, attribute))) is not None:
                yield from _answers(each[t], found[attribute], t, spent)


def _answers(shares: Shares, found: OverTime, t: int, spent: Spent | None) -> Iterator[Answer]:
    labels: Sequence[str | None] = [*shares.labels, *(shares.pum.tags if shares.pum else ())]
    labels = labels or [None] * found.smoothed.shape[1]
    quantities = [_quantity(shares, i) for i in range(len(labels))]
    bounds = (0.0, 1.0) if shares.pum is not None else (-np.inf, np.inf)
    for causal, kind in ((True, "filtered"), (False, "smoothed")):
        values, stderr = (found.filtered, found.filtered_stderr) if causal else (found.smoothed, found.smoothed_stderr)
        low, high = found.interval(INTERVAL_LEVEL, causal=causal)
        yield from answers_by_quantity(
            shares.span,
            "over_time",
            labels,
            [f"{each.value}, {kind}" for each in quantities],
            {
                "estimate": np.clip(values[t], *bounds),
                "stderr": stderr[t],
                "low": np.clip(low[t], *bounds),
                "high": np.clip(high[t], *bounds),
            },
            attribute=shares.attribute,
            n=shares.n,
            unit=unit_of(quantities[0]),
            spent=spent,
            assumed=shares.span.assumed + _WALK,
        )


def _quantity(shares: Shares, i: int) -> TableName:
    if shares.pum is None:
        return shares.quantity
    if i >= len(shares.labels):
        return TableName.HIDDEN
    return TableName.VISIBLE if shares.pum.tags else TableName.SHARE
