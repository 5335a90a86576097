"""Differences between two spans that have no report in common, and the smallest ones that they can show.

A difference is of what was measured: of shares that users do not hide, and of what is behind tags. Background adds to
both sides alike, and nothing to their difference.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from uldp.mechanisms.laws.estimate import Estimate, joined
from uldp.mechanisms.laws.interval import Ends, normal_quantile
from uldp.mechanisms.pooling.versions import whole_p_value
from uldp.mechanisms.questions.answer import Answer, answer_of, answers_by_quantity
from uldp.mechanisms.questions.shares import Shares
from uldp.mechanisms.questions.span import DRAWN, of_same_devices, spent_over
from uldp.mechanisms.questions.sums import Groups
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.schemas.table import INTERVAL_LEVEL

#: Corrections for many tests: Holm bounds the probability of a false finding, Benjamini-Hochberg their share.
Correction = Literal["holm", "bh"]
#: The quantity of the test of a whole distribution: how many times as large as usual its differences are.
WHOLE = "whole"
#: The probability with which the smallest change is found.
POWER = 0.8


def compare(
    before: Shares,
    after: Shares,
    groups: Groups | None = None,
    correction: Correction = "holm",
    *,
    same_devices: bool = False,
) -> Iterator[Answer]:
    """Yield the difference of each share, or of a mean, and of the whole distribution.

    The shares are those of two spans with the same values, which have no report in common. Sums of groups are compared
    in place of values. With ``same_devices``, those of the span with fewer reports keep responses, and are among those
    of the other: their noise is then less in a difference of what users still hold. RequestError if the devices keep no
    responses, or if they are of two versions, with responses of each.
    """
    names, quantities, weights = _entries(before, groups)
    changes = change(before, after, same_devices=same_devices)
    assumed = after.span.assumed + "; no user is in both"
    if same_devices:
        assumed = f"{DRAWN}; devices keep their responses, are the same at both times, and few of their values changed"
    spent = spent_over((*before.span.spans, *after.span.spans))
    shared: dict[str, Any] = {"against": _name(before, after), "assumed": assumed, "spent": spent}
    about = shared | {"attribute": after.attribute, "n": after.n}
    values = changes.values if weights is None else changes.values @ weights
    variance = changes.variance if weights is None else changes.variance_of(weights)
    low, high = _interval(before.linear, after.linear, values, variance, weights)
    unchanged = _under_no_change(before, after, changes)
    p_values = unchanged.p_values(weights)
    adjusted = _ADJUSTED[correction](p_values)
    # Where few reports agree by chance, their variance is too small, and the interval says more.
    half = np.maximum(values - low, high - values)
    smallest = smallest_change(half / normal_quantile(0.5 + INTERVAL_LEVEL / 2))
    columns = {
        "estimate": values,
        "unbiased": values,
        "stderr": np.sqrt(variance),
        "low": low,
        "high": high,
        "p_value": p_values,
        "p_adjusted": adjusted,
        "smallest": smallest,
    }
    unit = "number" if after.pum is None else "points"
    yield from answers_by_quantity(after.span, "difference", names, quantities, columns, unit=unit, **about)
    if len(names) > 1 and groups is None:
        ratio, p_whole = whole_p_value(unchanged)
        together = {"estimate": math.sqrt(ratio), "p_value": p_whole, "p_adjusted": p_whole}
        own = {name: np.array([number]) for name, number in together.items()}
        yield answer_of(after.span, "difference", [None], own, quantity=WHOLE, unit="number", **about)


def _name(shares: Shares, after: Shares) -> str:
    """Return what a difference is from; with the collection, if it is another."""
    version, period = shares.span.version, shares.span.period.name
    other = version.spec.collection != after.span.version.spec.collection
    versions = "+".join(f"v{each}" for each in shares.span.versions)
    return " ".join([*([version.spec.collection] if other else []), versions, period, *filter(None, [version.slices])])


def _entries(shares: Shares, groups: Groups | None) -> tuple[Sequence[str | None], Sequence[str], Floats | None]:
    """Return the names and quantities of what is compared, and the weights of sums, or None for single entries."""
    if shares.pum is None:
        if groups is not None:
            raise RequestError("a number has no values to sum; leave out the groups")
        return shares.labels or [None], [shares.quantity.value] * len(shares.linear.values), None
    of_values = "visible" if shares.pum.tags else "share"
    if groups is not None:
        tags = np.zeros((len(shares.pum.tags), len(groups.names)))
        of_sums = of_values if shares.held == 1 else shares.of_sums.value
        return groups.names, [of_sums] * len(groups.names), np.vstack([groups.members, tags])
    names = [*shares.labels, *shares.pum.tags]
    return names, [of_values] * shares.pum.size + ["hidden"] * len(shares.pum.tags), None


def change(before: Shares, after: Shares, *, same_devices: bool = False) -> Estimate:
    """Return what the later shares are more than the earlier ones; see ``compare``."""
    if not same_devices:
        return after.linear.less(before.linear)
    spans = (*after.span.spans, *before.span.spans)
    version = spans[0].version
    if len(spans) > 2 or spans[1].version is not version:
        raise RequestError("devices draw new responses for each version; compare times of one, or not the same devices")
    if not version.protocol.mechanism.memory:
        raise RequestError("devices keep no responses without lasting_epsilon, so none are the same at both times")
    return of_same_devices(after.linear, before.linear, (spans[0].sizes, spans[1].sizes))


def _interval(before: Estimate, after: Estimate, values: Floats, variance: Floats, weights: Floats | None) -> Ends:
    """Return intervals of differences: the squares of the distances to the ends of both intervals add up.

    With a covariance, twice the product of the distances times the correlation is taken off. A score interval of the
    difference would not hold where one window has none of the few reports of a value: its line of parameters leaves
    this window as it is. Source (MOVER): Zou & Donner, "Construction of confidence limits about effect measures"
    (Statistics in Medicine 27, 2008), section 3.
    """
    sums = [each.values if weights is None else each.values @ weights for each in (after, before)]
    variances = [each.variance if weights is None else each.variance_of(weights) for each in (after, before)]
    (low, high), (low_before, high_before) = (each.interval(INTERVAL_LEVEL, weights) for each in (after, before))
    scale = np.sqrt(variances[0] * variances[1])
    shared = np.where(scale > 0, (variances[0] + variances[1] - variance) / np.where(scale > 0, scale, 1.0), 0.0)

    def distance(one: Floats, other: Floats) -> Floats:
        return np.sqrt(np.maximum(one**2 + other**2 - shared * one * other, 0.0))

    below = distance(sums[0] - low, high_before - sums[1])
    above = distance(high - sums[0], sums[1] - low_before)
    return values - below, values + above


def _under_no_change(before: Shares, after: Shares, changes: Estimate) -> Estimate:
    """Return the differences with their errors if nothing differs: those at the shares of both together."""
    if after.span.version.protocol is not before.span.version.protocol or after.parts or before.parts:
        return changes
    both = after.decoder.linear(before.cells + after.cells, before.n + after.n)
    return changes.under(joined([both, both]))


def smallest_change(stderr: Floats) -> Floats:
    """Return the changes that are found with the probability ``POWER``, by Holm at the level of intervals.

    A change is found if it is more than the quantile for one of k tests, and is so with the quantile of ``POWER`` on
    top: 2.80 standard errors of a difference for one value, 4.8 for 625, 5.5 for 12,800.

    >>> [round(float(smallest_change(np.ones(k))[0]), 2) for k in (1, 625, 12_800)]
    [2.8, 4.79, 5.46]
    """
    return (normal_quantile(1 - (1 - INTERVAL_LEVEL) / 2 / len(stderr)) + normal_quantile(POWER)) * stderr


def holm(p_values: Floats) -> Floats:
    """Return adjusted p-values: at most alpha with probability alpha or less, if nothing differs.

    Source: Holm (Scandinavian Journal of Statistics 6, 1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def benjamini_hochberg(p_values: Floats) -> Floats:
    """Return adjusted p-values: of those at most q, an expected share of q or less is false, if tests are independent.

    Source: Benjamini & Hochberg (Journal of the Royal Statistical Society B 57, 1995).

    >>> benjamini_hochberg(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_values, kind="stable")[::-1]
    steps = p_values[order] * len(p_values) / np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps), 1.0)
    return adjusted


_ADJUSTED = {"holm": holm, "bh": benjamini_hochberg}
