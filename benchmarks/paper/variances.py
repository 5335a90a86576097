"""Analytic and empirical variance of every protocol, as in section 5.1 of Wang et al. (USENIX Security 2017).

Values follow Zipf's law with s = 1.1, of n = 10,000 users if n does not vary. The empirical variance is the mean
squared error of the estimated number of users of a value, over values; the analytic one is their equation (3) for the
same values. Where an estimate is not of a pure channel, it is the variance that the estimate of all realizations
together claims, without the part of the draw of users. Reports are drawn, not counts, so perturbation, support and
estimate are tested together.

The paper varies epsilon with 1,024 values, and the number of values with epsilon = 4. Varying n, the mean over the
``TOP`` most frequent values, and the mechanisms that are newer than the paper, are ours. So are the z-scores.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import Population, protocol
from benchmarks.paper.published_variances import PUBLISHED
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats, Mask
from uldp.schemas.specs.collection import CollectionSpec

#: The protocols, with the keys of their mechanisms. ``blh`` of specs has linear functions, and is HRR.
PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "DE": {"name": "rr"},
    "SHE": {"name": "she"},
    "THE": {"name": "the"},
    "SUE": {"name": "sue"},
    "OUE": {"name": "oue"},
    "BLH": {"name": "olh", "buckets": 2},
    "OLH": {"name": "olh"},
    "OLH, linear": {"name": "linear-olh"},
    "OLH, cohorts": {"name": "cohort-olh"},
    "HRR": {"name": "hrr"},
    "SS": {"name": "ss"},
    "PGR": {"name": "pgr"},
    "uRR": {"name": "urr"},
    "uRAP": {"name": "urap"},
    "uOUE": {"name": "uoue"},
    "uHR": {"name": "uhr"},
    "uSS": {"name": "uss"},
    "uBD": {"name": "ubd"},
}
EXPONENT, TOP = 1.1, 30
#: One value in so many is sensitive, where a mechanism protects some alone.
SENSITIVE = 8
# The cohorts have so many independent cells for each value.
_CELLS = 16


@dataclass(frozen=True)
class Setting:
    """What is measured at a point.

    Attributes:
        size: The number of values, d of the paper.
        users: n.
        epsilon: The budget of a report.
    """

    size: int = 1024
    users: int = 10_000
    epsilon: float = 4.0


#: What varies, and the settings by their abscissas.
SWEEPS: Mapping[str, Mapping[float, Setting]] = {
    "ε": {epsilon: Setting(epsilon=epsilon) for epsilon in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0)},
    "d": {size: Setting(size=size) for size in (16, 64, 256, 1024)},
    "n": {users: Setting(size=256, users=users) for users in (1_000, 3_000, 10_000, 30_000, 100_000)},
}


class Variance(NamedTuple):
    """The variance of a protocol at a point.

    Attributes:
        varied: What varies: a key of ``SWEEPS``.
        x: Its value.
        protocol: A key of ``PROTOCOLS``.
        of: The values over which means are taken.
        published: The variance of a rare value by the formula that the paper prints, in users squared; NaN if none.
        analytic: The mean variance, in users squared.
        empirical: The mean squared error, in users squared.
        z: How many standard errors the empirical variance is away from the analytic one. The error is estimated from
            few realizations, so this is the normal score of Student's t.
    """

    varied: str
    x: float
    protocol: str
    of: str
    published: float
    analytic: float
    empirical: float
    z: float


def zipf(setting: Setting) -> Population:
    """Return values with shares in the ratio of 1, 2^-s, 3^-s, ..., every eighth of which is sensitive."""
    weights = np.arange(1, setting.size + 1) ** -EXPONENT
    sensitive = np.arange(setting.size) % SENSITIVE == 0
    return Population("Zipf", weights / weights.sum(), sensitive, setting.users)


def measure(effort: Effort, sweeps: Mapping[str, Mapping[float, Setting]] = SWEEPS) -> Iterator[Variance]:
    """Measure all protocols; the users' values are the same in each realization."""
    for varied, settings in sweeps.items():
        for x in effort.some(tuple(settings)):
            for name in PROTOCOLS:
                yield from _at(varied, x, name, settings[x], effort.realizations)


def _at(varied: str, x: float, name: str, setting: Setting, realizations: int) -> Iterator[Variance]:
    population, n = zipf(setting), setting.users
    values = np.random.default_rng(10).choice(setting.size, n, p=population.p)
    held: Floats = np.bincount(values, minlength=setting.size) / n
    built, devices = _protocol(name, population, setting.epsilon, values)
    rng = np.random.default_rng([11, list(PROTOCOLS).index(name), setting.size, n, round(10 * setting.epsilon)])
    symbols = built.encoding.encode([devices], rng)
    windows = [built.mechanism.statistic(built.mechanism.perturb(symbols, rng)) for _ in range(realizations)]
    squares = n**2 * np.array([(built.decoder.linear(cells, n).values - held) ** 2 for cells in windows])
    analytic = n**2 * _analytic(built, held, windows, n)
    formula = PUBLISHED.get(name.split(",")[0])
    published = math.nan if formula is None else formula(setting.epsilon, setting.size) * n
    for of, mask in _means(name, population).items():
        # Of each realization, the mean over values: these means are independent.
        means = squares[:, mask].mean(axis=1)
        expected = float(analytic[mask].mean())
        yield Variance(varied, x, name, of, published, expected, float(means.mean()), _score(means, expected))


def _protocol(name: str, population: Population, epsilon: float, values: Counts) -> tuple[LdpProtocol, Held]:
    """Return a protocol, and what its devices hold; cohorts hold the values as strings."""
    mechanism, nothing = PROTOCOLS[name], np.full(len(values), -1)
    if mechanism["name"] != "cohort-olh":
        return protocol(population, mechanism, epsilon), Held(values, nothing)
    texts = np.array([str(value) for value in range(len(population.p))], dtype=np.object_)
    buckets = round(math.exp(epsilon)) + 1
    cohorts = 1 << math.ceil(math.log2(_CELLS * len(texts) / (buckets - 1)))
    keys: dict[str, Any] = {
        "collection": "paper",
        "version": 1,
        "domain": {"strings": {"longest": 8}},
        "mechanism": {**mechanism, "epsilon": epsilon, "cohorts": cohorts},
        "window": {"size": "1d"},
        "candidates": texts.tolist(),
    }
    return build_protocol(CollectionSpec.parse(keys, base=Path())), Held(texts[values], nothing)


def _analytic(built: LdpProtocol, held: Floats, windows: Sequence[Counts], n: int) -> Floats:
    """Return the variance of each estimated share, given the users' values."""
    if isinstance(built.decoder, PureDecoder):
        return built.decoder.channel.variance_given_values(held, n)
    together = built.decoder.linear(np.sum(windows, axis=0), n * len(windows))
    return together.variance * len(windows) - held * (1 - held) / n


def _means(name: str, population: Population) -> dict[str, Mask]:
    """Return the values over which means are taken; the first ones are the most frequent."""
    if name.startswith("u"):
        return {"X_S": population.sensitive, "X_N": ~population.sensitive}
    size = len(population.p)
    everything = {"all": np.ones(size, dtype=np.bool_)}
    return everything | {"top": np.arange(size) < TOP} if size > TOP else everything


def _score(means: Floats, expected: float) -> float:
    t = (means.mean() - expected) / (means.std(ddof=1) / math.sqrt(len(means)))
    return float(-np.sign(t) * special.ndtri(special.stdtr(len(means) - 1, -abs(t))))


def draw(rows: Sequence[Variance], path: Path) -> None:
    """Draw analytic variances as lines, and empirical ones as points."""
    from matplotlib.figure import Figure

    panels = [(varied, of) for of in ("all", "top", "X_S", "X_N") for varied in SWEEPS]
    image = Figure(figsize=(16, 18), layout="constrained")
    for axes, panel in zip(image.subplots(4, 3).flat, panels, strict=True):
        for index, name in enumerate(PROTOCOLS):
            of = [row for row in rows if row.protocol == name and (row.varied, row.of) == panel]
            if of:
                x, look = [row.x for row in of], {"color": f"C{index % 10}", "marker": "os"[index // 10]}
                axes.plot(x, [row.analytic for row in of], color=look["color"])
                axes.plot(x, [row.empirical for row in of], linestyle="none", markersize=4, label=name, **look)
        axes.set_yscale("log")
        axes.set_xscale("linear" if panel[0] == "ε" else "log")
        axes.set_xlabel(panel[0])
        axes.set_title(f"{panel[1]}; lines: analytic, users²", fontsize=9)
        axes.legend(fontsize=6)
    image.savefig(path, dpi=90)


def table(rows: Sequence[Variance]) -> list[str]:
    """Return a Markdown table of each protocol, and one of all points."""
    lines = [
        "| protocol | points | empirical / analytic, geometric mean | largest absolute z |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in PROTOCOLS:
        of = [row for row in rows if row.protocol == name]
        ratio = math.exp(np.mean([math.log(row.empirical / row.analytic) for row in of]))
        lines.append(f"| {name} | {len(of)} | {ratio:.4f} | {max(abs(row.z) for row in of):.1f} |")
    lines += [
        "",
        "| varied | | protocol | values | published | analytic | empirical | z |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for r in rows:
        published = "" if math.isnan(r.published) else f"{r.published:.5g}"
        point = f"| {r.varied} | {r.x:g} | {r.protocol} | {r.of} | {published}"
        lines.append(f"{point} | {r.analytic:.5g} | {r.empirical:.5g} | {r.z:+.1f} |")
    return lines
