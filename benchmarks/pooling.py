"""What one estimate of several versions of a collection gains, on the census that the project ships.

    python -m benchmarks.pooling --seeds 20

Each setting is some versions, with a mechanism, epsilon and number of users each. The l1 distance to the truth is that
of the pooled estimate, of the best version alone, and of means of the versions' estimates, equal or weighted by n. All
of them are projected onto the simplex by ``wls``.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder, share_estimate
from uldp.mechanisms.estimators.projection import wls
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.laws.channel_laws import law_of
from uldp.mechanisms.pooling.versions import pool
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.collection import CollectionSpec

EXAMPLE = Path(__file__).parents[1] / "examples" / "census"
SEEDS = 20


class Version(NamedTuple):
    """A version: its mechanism, epsilon, and number of users."""

    mechanism: str
    epsilon: float
    users: int


SETTINGS: Sequence[Sequence[Version]] = (
    # Devices move from epsilon 1 to 2: a twentieth, half, and nearly all of them.
    (Version("urr", 1, 95_000), Version("urr", 2, 5_000)),
    (Version("urr", 1, 50_000), Version("urr", 2, 50_000)),
    (Version("urr", 1, 5_000), Version("urr", 2, 95_000)),
    (Version("oue", 1, 50_000), Version("oue", 2, 50_000)),
    (Version("urap", 0.5, 50_000), Version("urap", 1, 50_000)),
    (Version("urr", 4, 2_000), Version("urr", 2, 20_000)),
    (Version("rr", 4, 50_000), Version("rr", 6, 10_000)),
    (Version("urr", 3, 50_000), Version("oue", 3, 50_000)),
    (Version("urr", 1, 30_000), Version("urr", 2, 30_000), Version("urr", 3, 30_000)),
    (Version("oue", 1, 60_000), Version("urap", 1, 30_000), Version("urr", 4, 10_000)),
)


def draw(channel: Channel, p: Floats, n: int, rng: np.random.Generator) -> Counts:
    """Draw the support counts of n users whose values are i.i.d., without their reports.

    Symbol counts are multinomial. Bits are independent given the value, so the count of a bit is that of the holders
    who keep it and of the others who set it.
    """
    if channel.one_symbol:
        m = channel.support_probability(p)
        return rng.multinomial(n, m / m.sum())
    holders = rng.multinomial(n, p)
    return rng.binomial(holders, channel.p) + rng.binomial(n - holders, channel.q)


def measure(versions: Sequence[Version], seeds: int) -> Floats:
    """Return mean l1 distances to the truth: pooled, plain mean, mean weighted by n, and then each version alone."""
    spec = CollectionSpec.load(EXAMPLE / "spec.yaml")
    truth = Truth.load(EXAMPLE / "truth.csv", spec).distribution()
    channels = [_channel(spec, version) for version in versions]
    reports = np.array([version.users for version in versions])
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        parts = [
            share_estimate(law_of(each), draw(each, truth, n, rng), n)
            for each, n in zip(channels, reports.tolist(), strict=True)
        ]
        alone = np.array([wls(part.channel, part.counts, part.reports) for part in parts])
        estimates = [pool(parts).r, alone.mean(axis=0), reports @ alone / reports.sum(), *alone]
        errors.append([np.abs(estimate - truth).sum() for estimate in estimates])
    means: Floats = np.mean(errors, axis=0)
    return means


def _channel(spec: CollectionSpec, version: Version) -> Channel:
    keys = spec.model_dump(mode="json", exclude_none=True, exclude={"estimator", "sensitive"})
    keys["mechanism"] = {"name": version.mechanism, "epsilon": version.epsilon}
    if version.mechanism in {"urr", "urap"}:
        keys["sensitive"] = spec.model_dump(mode="json")["sensitive"]
    decoder = build_protocol(CollectionSpec.parse(keys, base=EXAMPLE)).decoder
    assert isinstance(decoder, PureDecoder)
    return decoder.channel


def main() -> None:
    """Print a Markdown table."""
    seeds = read_options(__doc__, seeds=SEEDS).seeds
    print("| versions | best alone | pooled | against the best | against the mean | against the mean by n |")
    print("| --- | --- | --- | --- | --- | --- |")
    for versions in SETTINGS:
        pooled, mean, by_n, *alone = measure(versions, seeds).tolist()
        names = ", ".join(f"{each.mechanism} {each.epsilon:g} ({each.users:,})" for each in versions)
        best = min(alone)
        gains = " | ".join(f"{100 * (pooled / other - 1):+z.0f} %" for other in (best, mean, by_n))
        print(f"| {names} | {best:.3f} | {pooled:.3f} | {gains} |")


if __name__ == "__main__":
    main()
