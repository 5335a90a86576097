"""The published shares of bins, ``auto``, from the reports of all levels of a tree; see ``estimators.ordered``."""

from functools import partial

from numpy.random import Generator

from uldp.mechanisms.decoders.pure import share_estimate
from uldp.mechanisms.estimators.ordered import (
    MOST_REPORTS,
    Fit,
    cosine_noise,
    half_of,
    into_box,
    ordered_shares,
    seed_of,
)
from uldp.mechanisms.families.tree.linear import TreeEstimate
from uldp.mechanisms.laws.channel_laws import ChannelLaw
from uldp.schemas.arrays import Floats
from uldp.schemas.table import INTERVAL_LEVEL


def published_shares(linear: TreeEstimate) -> Floats:
    """Return shares of 0 or more, with the sum 1, shape (m,), each within its simultaneous interval."""
    divisible = all(1 < part.reports < MOST_REPORTS for part in linear.estimates)
    halve, seed = partial(halves, linear) if divisible else None, seed_of([part.counts for part in linear.estimates])
    low, high = linear.interval(1 - (1 - INTERVAL_LEVEL) / linear.design.size)
    return into_box(ordered_shares(fit_of(linear), halve, seed), low.clip(0.0), high.clip(0.0))


def halves(linear: TreeEstimate, rng: Generator) -> tuple[Fit, Fit]:
    """Divide the reports of each level by chance, and return the fits of both halves."""
    weights, one, other = [weight / 2 for weight in linear.weights], [], []
    for part in linear.estimates:
        n, law = int(part.n[0]), part.parts[0].law
        assert isinstance(law, ChannelLaw)
        drawn = half_of(part.counts, n, rng, partition=part.channel.one_symbol)
        one.append(share_estimate(law, drawn, n // 2))
        other.append(share_estimate(law, part.counts - drawn, n - n // 2))
    first, second = (fit_of(TreeEstimate.of(parts, weights, linear.design)) for parts in (one, other))
    return first, second


def fit_of(linear: TreeEstimate) -> Fit:
    """Return what the candidates follow from."""
    design = linear.design
    noise = cosine_noise(design.size, design.widths, [float(weight) for weight in linear.weights])
    return Fit(linear.values, linear.nearest, noise)
