"""Answers of each time by the windows around it: those of the filter and of the smoother, beside no window's own."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.pooling.versions import WeightedLinear
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.mechanisms.questions.answer import Answer, answer_of
from uldp.mechanisms.questions.kept import response_variance
from uldp.mechanisms.questions.over_time import OverTime, over_time
from uldp.mechanisms.questions.pool import Pool
from uldp.mechanisms.questions.shares import Shares, shares_of
from uldp.mechanisms.questions.span import Span, spent_over
from uldp.mechanisms.randomizers.strata import Strata
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.table import INTERVAL_LEVEL, TableName

_WALK = (
    "; what is smoothed changes by a random walk or jumps, and is no estimate of a window alone: filtered by the"
    " windows up to it, smoothed by all"
)


def smoothed(spans: Sequence[Span | Pool]) -> Iterator[Answer]:
    """Yield the filtered and the smoothed numbers of spans of a version, or of pools, by time: what was measured.

    Raises:
        RequestError: if the spans have reports in common, or if fewer than three have counts.
    """
    if any(after.period.start < before.period.end for before, after in pairwise(spans)):
        raise RequestError("sliding windows have reports in common, so they cannot be smoothed; add --every")
    series: dict[str, list[Shares]] = defaultdict(list)
    for span in spans:
        for shares in shares_of(span):
            series[shares.attribute].append(shares)
    if not series:
        raise RequestError("no window has enough reports to smooth; add --every, so that they are summed")
    found = {attribute: _over_time(of) for attribute, of in series.items()}
    spent = spent_over([part for span in spans for part in span.spans])
    places = {(of.span.period, attribute): t for attribute, each in series.items() for t, of in enumerate(each)}
    for span in spans:
        for attribute, each in series.items():
            if (t := places.get((span.period, attribute))) is not None:
                yield from _answers(each[t], found[attribute], t, spent)


def _over_time(series: Sequence[Shares]) -> OverTime:
    shared = [_shared(each) for each in series]
    return over_time([each.linear for each in series], shared, [each.span.period.start for each in series])


def _shared(shares: Shares) -> Floats:
    """Return the part of the variances that comes from kept responses."""
    if not shares.parts:
        return response_variance(_mechanism(shares), shares.linear, shares.n)
    assert isinstance(shares.linear, WeightedLinear)
    pairs = zip(shares.linear.weights, shares.parts, strict=True)
    variance: Floats = np.sum([weight**2 * _shared(part) for weight, part in pairs], axis=0)
    return variance


def _mechanism(shares: Shares) -> Mechanism:
    """Return the mechanism of a variable."""
    version = shares.span.version
    mechanism = version.protocol.mechanism
    if isinstance(mechanism, Strata) and isinstance(version.decoder, StrataDecoder):
        return mechanism.parts[list(version.spec.variables).index(shares.attribute)]
    return mechanism


def _answers(shares: Shares, found: OverTime, t: int, spent: float | None) -> Iterator[Answer]:
    labels: Sequence[str | None] = [*shares.labels, *(shares.pum.tags if shares.pum else ())]
    labels = labels or [None] * found.smoothed.shape[1]
    for causal, kind in ((True, "filtered"), (False, "smoothed")):
        values, stderr = (found.filtered, found.filtered_stderr) if causal else (found.smoothed, found.smoothed_stderr)
        low, high = found.interval(INTERVAL_LEVEL, causal=causal)
        bounds = (0.0, 1.0) if shares.pum is not None else (-np.inf, np.inf)
        for i, label in enumerate(labels):
            yield answer_of(
                shares.span,
                "over_time",
                attribute=shares.attribute,
                n=shares.n,
                quantity=f"{_quantity(shares, i).value}, {kind}",
                label=label,
                estimate=float(np.clip(values[t, i], *bounds)),
                stderr=float(stderr[t, i]),
                low=float(np.clip(low[t, i], *bounds)),
                high=float(np.clip(high[t, i], *bounds)),
                level=INTERVAL_LEVEL,
                spent=spent,
                assumed=shares.span.assumed + _WALK,
            )


def _quantity(shares: Shares, i: int) -> TableName:
    if shares.pum is None:
        return shares.quantity
    if i >= len(shares.labels):
        return TableName.HIDDEN
    return TableName.VISIBLE if shares.pum.tags else TableName.SHARE
