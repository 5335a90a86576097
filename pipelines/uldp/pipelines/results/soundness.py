"""Validate the panes in files, which may be damaged, so that later code handles only panes that a job may write."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np

from uldp.schemas.records import SKEW_RANGES, Estimate, SupportCounts, iso

#: A limit far above every real share or standard error. Larger numbers would overflow in figures and in products.
_SHARE_LIMIT = 1e15


def sound_counts(value: Mapping[str, Any]) -> SupportCounts:
    """Read counts from the value that ``support_counts.avsc`` describes.

    Raises:
        Exception: if no job can have written these counts.
    """
    pane = SupportCounts.from_avro(value)
    iso(pane.window_start), iso(pane.window_end)  # raises for years that ISO 8601 text cannot hold
    signals = pane.signals
    numbers = [*astuple(pane.accounting), *pane.counts.tolist(), *signals.early, *signals.past]
    if pane.window_start >= pane.window_end or min(numbers) < 0 or pane.counts.max() > pane.n:
        raise ValueError("the window, the counts or the accounting are impossible")
    if max(len(signals.early), len(signals.past)) > SKEW_RANGES:
        raise ValueError("too many ranges of clock skew")
    return pane


def sound_estimate(value: Mapping[str, Any]) -> Estimate:
    """Read an estimate from the value that ``estimate.avsc`` describes.

    Raises:
        Exception: if no job can have written this estimate.
    """
    estimate = replace(Estimate.from_avro(value), support=sound_counts(value))
    tags = [figure for tag in estimate.tags.values() for figure in (tag.mass, tag.stderr)]
    shares = np.array([*estimate.distribution, *estimate.stderr, *tags, estimate.bound])
    if len(estimate.distribution) != len(estimate.stderr) or not (np.abs(shares) < _SHARE_LIMIT).all():
        raise ValueError("the shares or the errors are impossible")
    if estimate.stderr.min() < 0 or estimate.support.n < 1:
        raise ValueError("an error is negative, or n is 0")
    return estimate
