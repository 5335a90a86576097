"""Differences between two spans that have no report in common, and the smallest ones that they can show.

A difference is of what was measured: of shares that users do not hide, and of what is behind tags. Background adds to
both sides alike, and nothing to their difference.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from uldp.mechanisms.decoders.strata_decoder import StrataDecoder
from uldp.mechanisms.protocol.channel import normal_quantile
from uldp.mechanisms.protocol.decoder import MarginsDecoder
from uldp.mechanisms.protocol.linear import Linear
from uldp.mechanisms.questions.answer import Answer, answer_of
from uldp.mechanisms.questions.combination import Combined, combined, singles
from uldp.mechanisms.questions.kept import Difference
from uldp.mechanisms.questions.kept import difference as difference_of
from uldp.mechanisms.questions.shares import Shares
from uldp.mechanisms.questions.span import DRAWN, spent_over
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
# The test of the whole distribution takes covariances of so many entries exactly, and of more from random weights.
_EXACT, _PROBES = 1024, 64


def compare(
    before: Shares,
    after: Shares,
    groups: Groups | None = None,
    correction: Correction = "holm",
    *,
    same_devices: bool = False,
) -> Iterator[Answer]:
    """Yield the difference of each share, or of a mean, and of the whole distribution.

    Args:
        before: The shares of one span.
        after: Those of another one with the same values, which has no report in common with it.
        groups: Groups of values, whose sums are compared in place of the values.
        correction: The correction of p-values for their number.
        same_devices: Whether the devices of the span with fewer reports keep responses, and are among those of the
            other. Their noise is then less in a difference of what users still hold.

    Raises:
        RequestError: if the devices keep no responses, or if they are of two versions, with responses of each.
    """
    names, quantities, weights = _entries(before, groups)
    changes = change(before, after, same_devices=same_devices)
    if same_devices:
        difference = _combined(changes, weights)
        assumed = f"{DRAWN}; devices keep their responses, are the same at both times, and few of their values changed"
    else:
        difference = _combined(after.linear, weights) - _combined(before.linear, weights)
        assumed = after.span.assumed + "; no user is in both"
    spent = spent_over((*before.span.spans, *after.span.spans))
    shared = {"against": _name(before, after), "assumed": assumed, "spent": spent}
    p_values = _p_values(difference)
    adjusted = _ADJUSTED[correction](p_values)
    # Where few reports agree by chance, their variance is too small, and the interval says more.
    half = np.maximum(difference.below, difference.above)
    smallest = smallest_change(half / normal_quantile(0.5 + INTERVAL_LEVEL / 2))
    for i, (name, quantity) in enumerate(zip(names, quantities, strict=True)):
        yield answer_of(
            after.span,
            "difference",
            attribute=after.attribute,
            n=after.n,
            quantity=quantity,
            label=name,
            estimate=float(difference.values[i]),
            unbiased=float(difference.values[i]),
            stderr=float(np.sqrt(difference.variance[i])),
            low=float(difference.values[i] - difference.below[i]),
            high=float(difference.values[i] + difference.above[i]),
            level=INTERVAL_LEVEL,
            p_value=float(p_values[i]),
            p_adjusted=float(adjusted[i]),
            smallest=float(smallest[i]),
            **shared,
        )
    if len(names) > 1 and groups is None:
        yield _whole(after, changes, shared)


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


def change(before: Shares, after: Shares, *, same_devices: bool = False) -> Linear:
    """Return what the later shares are more than the earlier ones; see ``compare``."""
    if not same_devices:
        return Difference(after.linear, before.linear)
    spans = (*after.span.spans, *before.span.spans)
    version = spans[0].version
    if len(spans) > 2 or spans[1].version is not version:
        raise RequestError("devices draw new responses for each version; compare times of one, or not the same devices")
    if not version.protocol.mechanism.memory:
        raise RequestError("devices keep no responses without lasting_epsilon, so none are the same at both times")
    attributes, windows = list(version.spec.variables), ((span.cells, span.sizes) for span in spans)
    part = attributes.index(after.attribute) if isinstance(version.decoder, StrataDecoder) else None
    whole = difference_of(version.protocol, *windows, same_devices=True, part=part)
    return version.decoder.margin(whole, after.attribute) if isinstance(version.decoder, MarginsDecoder) else whole


def _combined(linear: Linear, weights: Floats | None) -> Combined:
    """Return sums, or single entries."""
    return singles(linear, INTERVAL_LEVEL) if weights is None else combined(linear, weights, INTERVAL_LEVEL)


def _p_values(difference: Combined) -> Floats:
    """Return the two-sided p-values of no difference: below 0.05 where the interval does not hold 0."""
    from scipy import special  # takes a quarter of a second

    distance = np.where(difference.values > 0, difference.below, difference.above)
    z = normal_quantile(0.5 + INTERVAL_LEVEL / 2) * np.abs(difference.values) / np.maximum(distance, 1e-300)
    return np.asarray(2 * special.ndtr(-z))


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


def whole_p_value(changes: Linear) -> tuple[float, float]:
    """Return the sum of squared differences in standard errors, over its expectation, and its p-value.

    If nothing differs, the differences d are about normal with Cov = C. So T = sum d_z^2 / C_zz has the expectation
    tr A and the variance 2 tr A^2, for A = D C D with D = C_zz^(-1/2); its law is about that of a chi-square with the
    same two moments. Source: Satterthwaite (Biometrics 2, 1946).
    """
    from scipy import special  # takes a quarter of a second

    difference, variance = changes.values, changes.variance
    some = variance > 0
    scale = np.where(some, 1 / np.sqrt(np.where(some, variance, 1.0)), 0.0)[:, np.newaxis]
    k = len(difference)
    probes = np.eye(k) if k <= _EXACT else np.random.default_rng(0).choice([-1.0, 1.0], (k, _PROBES))
    product = scale * changes.times(scale * probes)
    squares = float((product**2).sum()) / (1 if k <= _EXACT else _PROBES)
    mean, of_square = float(some.sum()), 2 * squares
    degrees, factor = 2 * mean**2 / of_square, of_square / (2 * mean)
    statistic = float(((difference * scale[:, 0]) ** 2).sum())
    return statistic / mean, float(special.chdtrc(degrees, statistic / factor))


def _whole(after: Shares, changes: Linear, shared: Mapping[str, Any]) -> Answer:
    ratio, p_value = whole_p_value(changes)
    return answer_of(
        after.span,
        "difference",
        attribute=after.attribute,
        n=after.n,
        quantity=WHOLE,
        label=None,
        estimate=math.sqrt(ratio),
        p_value=p_value,
        p_adjusted=p_value,
        **shared,
    )
