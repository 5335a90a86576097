"""The laws that each published number keeps, whatever the mechanism, the domain, epsilon and the number of reports.

- bias: the mean of "unbiased" over windows is within 4 of its standard errors of the truth.
- stderr: the root mean square of the published standard errors is within 5 % of the standard deviation over windows.
- least: no entry of a statistic is covered less often than .92.
- mean: the entries of a statistic are covered .94 of the time or more. Above .98 an interval is conservative, as exact
  ones of rare counts are: ``Figures.mean`` shows it, and it breaks no law.
- alarms: of what is so, p-values are .05 or less in .06 of windows at the most.
- inside: no value lies outside of its own interval.

Windows are few, so that a law is broken only if its figure is beyond the bound, and is so by more than chance explains:
by ``Z`` standard errors, with Bonferroni's correction for the number of entries.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.random import default_rng

from tests.build import spec
from tests.mechanisms.gathered_numbers import Gathered, Gathering
from tests.mechanisms.populations import Population
from tests.mechanisms.protocols import specs

#: The grid of settings.
REPORTS, EPSILONS = (100, 1_000, 20_000), (0.5, 4.0, 8.0)
LAWS = ("bias", "stderr", "least", "mean", "alarms", "inside")
#: So many standard errors are chance.
Z = 4.0
#: The bounds of the laws, and the level of intervals and of p-values.
STDERR, LEAST, MEAN, ALARMS, LEVEL, ALPHA = 0.05, 0.92, 0.94, 0.06, 0.95, 0.05
#: Reports and decoded cells of a setting, at the most; with more of either, there are fewer windows, down to 24.
_REPORTS, _CELLS, _LEAST = 2_000_000, 100_000, 24

#: The largest lasting epsilon that a spec takes.
_MOST = 20.0

_NUMBER = {"number": {"low": 0.0, "high": 100.0}}
_PLACES = {"record": {"place": {"size": 12}, "app": {"size": 8}, "new": {"size": 2}}}


def _large(name: str, domain: Mapping[str, Any], **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": 1.0, **parameters}}


#: Domains beyond the sizes at which code takes another way, beside the examples, which are small.
LARGE: dict[str, dict[str, Any]] = {
    "rr of 40 values": _large("rr", {"size": 40}),
    "oue of 40 values": _large("oue", {"size": 40}),
    "hrr of 1,100 values": _large("hrr", {"size": 1_100}),
    "hrr of 12,800 values": _large("hrr", {"size": 12_800}),
    "urr of 40 values": _large("urr", {"size": 40}) | {"sensitive": list(range(5, 15))},
    "ubd of 40 values": _large("ubd", {"size": 40}) | {"sensitive": list(range(5, 15))},
    "uhr of 40 values": _large("uhr", {"size": 40}) | {"sensitive": list(range(5, 15))},
    "tree of 100 bins": _large("tree", _NUMBER, bins=100),
    "tree of 256 bins": _large("tree", _NUMBER, bins=256),
    "tree of 1,024 bins": _large("tree", _NUMBER),
    "block of 256 bins": _large("block", _NUMBER, bins=256),
    "block of 1,024 bins": _large("block", _NUMBER, bins=1_024),
    "metric of 120 values": _large("metric", {"size": 120}, columns=12),
    "marginals of 22 values": _large("marginals", _PLACES, views="pairs") | {"given": [["place", "new"]]},
    "pairs of 32 candidates": _large("pairs", {"ranking": {"of": [f"c{at}" for at in range(32)]}}),
    "set-ss of 60 items": _large("set-ss", {"set": {"of": {"size": 60}, "at_most": 3}}),
    "set-ss of 60 keys": _large("set-ss", {"pairs": {"of": {"size": 60}, "at_most": 3, "low": 0.0, "high": 5.0}}),
    "levels that differ": {
        "domain": {"size": 8},
        "mechanism": {
            "name": "levels",
            "levels": {"strict": {"epsilon": 0.5, "share": 0.5}, "open": {"epsilon": 2.0, "share": 0.5}},
            "of": {"name": "oue"},
        },
    },
}
#: In these, users who choose another level of privacy hold other values.
DIFFERING = ("levels that differ",)


def _specs() -> dict[str, dict[str, Any]]:
    return specs() | LARGE


def names() -> list[str]:
    """Return the names of all protocols."""
    return list(_specs())


def population(name: str, epsilon: float) -> Population | None:
    """Return the users of a protocol with another epsilon; None if its other parameters do not allow for it."""
    keys = _specs()[name]
    base = keys["mechanism"].get("epsilon", 1.0)
    try:
        found = Population(spec(**_scaled(keys, epsilon / base)), differ=name in DIFFERING)
        return found if found.protocol else None
    except ValueError:
        return None


def _scaled(keys: Any, factor: float) -> Any:
    """Return the keys of a spec with each epsilon in them times a factor."""
    if isinstance(keys, Mapping):
        return {
            name: min(value * factor, _MOST) if name.endswith("epsilon") and value else _scaled(value, factor)
            for name, value in keys.items()
        }
    return [_scaled(each, factor) for each in keys] if isinstance(keys, list) else keys


class Setting(NamedTuple):
    """A protocol with an epsilon and a number of reports in each window."""

    name: str
    epsilon: float
    n: int


@dataclass(frozen=True)
class Figures:
    """What a statistic shows in one setting.

    Attributes:
        windows: The number of windows.
        bias: The mean of "unbiased" less the truth, in its standard errors, of the entry where it is largest.
        stderr: The published standard errors over the standard deviation, of the entry where they are farthest apart.
        least: The share of windows in which the interval covers, of the entry where it is least.
        mean: The same in the mean over the entries.
        alarms: The share of windows with a p-value of .05 or less, of the entry where it is largest.
        outside: The share of values outside of their own interval.
        broken: The laws that are broken. Figures of laws that do not apply are NaN.
    """

    windows: int
    bias: float = math.nan
    stderr: float = math.nan
    least: float = math.nan
    mean: float = math.nan
    alarms: float = math.nan
    outside: float = math.nan
    broken: tuple[str, ...] = ()


def measure(setting: Setting, windows: int) -> dict[str, Figures]:
    """Return the figures of each statistic of a setting; {} if its spec cannot be built."""
    of = population(setting.name, setting.epsilon)
    if of is None:
        return {}
    seed = [19, names().index(setting.name), EPSILONS.index(setting.epsilon), setting.n]
    size = of.protocol.mechanism.statistic_size
    fewer = max(min(windows, _REPORTS // setting.n, _CELLS // size), _LEAST)
    return {name: judged(each) for name, each in Gathering(of).windows(setting.n, fewer, default_rng(seed)).items()}


def settings(name: str) -> Iterator[Setting]:
    """Yield the settings of a protocol; one without an epsilon has one."""
    private = "epsilon" in str(_specs()[name]["mechanism"])
    for epsilon in EPSILONS if private else EPSILONS[:1]:
        for n in REPORTS:
            yield Setting(name, epsilon, n)


def judged(gathered: Gathered) -> Figures:
    """Return the figures of a statistic, and the laws that they break."""
    shown, broken = dict[str, float](), list[str]()
    for laws in (_bias, _stderr, _coverage, _alarms, _inside):
        for law, (name, figure, breaks) in laws(gathered).items():
            shown[name] = figure
            broken += [law] if breaks else []
    return Figures(len(gathered.windows), **shown, broken=tuple(broken))


#: By law: the name of the figure, the figure, and whether it breaks the law.
_Judgement = dict[str, tuple[str, float, bool]]


def quantile(entries: int) -> float:
    """Return the standard errors that one of so many entries exceeds as seldom as one alone exceeds ``Z``."""
    return -NormalDist().inv_cdf(NormalDist().cdf(-Z) / max(entries, 1))


def _bias(of: Gathered) -> _Judgement:
    error, claimed = of.array("unbiased") - of.array("truth"), of.array("stderr")
    known = ~np.isnan(error).any(axis=0)
    error, claimed = error[:, known], claimed[:, known]
    windows, entries = error.shape
    if not entries or windows < 2:
        return {}
    # What few reports are about may be in no window: then its error is what is claimed.
    sd = np.maximum(error.std(axis=0, ddof=1), np.sqrt((np.nan_to_num(claimed) ** 2).mean(axis=0)))
    z = error.mean(axis=0) / np.maximum(sd / math.sqrt(windows), 1e-12)
    skewness = ((error - error.mean(axis=0)) ** 3).mean(axis=0) / np.maximum(sd, 1e-12) ** 3
    # Cornish and Fisher's first term: the mean of few skewed numbers is skewed, and its error is small where it is low.
    most = quantile(entries) + quantile(entries) ** 2 * np.abs(skewness) / (3 * math.sqrt(windows))
    at = int(np.abs(z / most).argmax())
    return {"bias": ("bias", float(z[at]), bool(abs(z[at]) > most[at]))}


def _stderr(of: Gathered) -> _Judgement:
    values, claimed = of.array("unbiased"), of.array("stderr")
    both = ~np.isnan(values).any(axis=0) & ~np.isnan(claimed).any(axis=0)
    values, claimed = values[:, both], claimed[:, both]
    sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    varies = sd > 1e-9
    if not varies.any():
        return {}
    ratio = np.sqrt((claimed[:, varies] ** 2).mean(axis=0)) / sd[varies]
    centred = (values[:, varies] - values[:, varies].mean(axis=0)) / sd[varies]
    # The relative variance of a sample variance is (kurtosis - 1) / windows.
    error = np.sqrt(np.maximum((centred**4).mean(axis=0) - 1, 0.5) / (4 * len(values)))
    beyond = (np.abs(np.log(ratio)) - math.log(1 + STDERR)) / error
    at = int(beyond.argmax())
    # Entries depend on each other: half of them are taken to be independent.
    of_all = (abs(np.log(ratio).mean()) - math.log(1 + STDERR)) / math.sqrt(2 * (error**2).sum()) * len(ratio)
    return {"stderr": ("stderr", float(ratio[at]), bool(beyond[at] > quantile(len(ratio)) or of_all > Z))}


def _coverage(of: Gathered) -> _Judgement:
    truth, low, high = of.array("truth"), of.array("low"), of.array("high")
    covered = np.where(np.isnan(low + truth), np.nan, (low <= truth + 1e-9) & (truth - 1e-9 <= high))
    there = ~np.isnan(covered)
    if not there.any():
        return {}
    # Entries that few windows have say little.
    often = there.sum(axis=0) >= 10
    if not often.any():
        return {}
    windows = there.sum(axis=0)[often]
    entries = np.nanmean(covered[:, often], axis=0)
    z = (LEVEL - entries) / np.sqrt(LEVEL * (1 - LEVEL) / windows)
    at = int(entries.argmin())
    mean = float(np.mean(covered[there]))
    of_windows = np.nanmean(covered[there.any(axis=1)], axis=1)
    error = max(of_windows.std(ddof=1), math.sqrt(LEVEL * (1 - LEVEL) / len(entries))) / math.sqrt(len(of_windows))
    return {
        "least": ("least", float(entries[at]), bool(((entries < LEAST) & (z > quantile(len(entries)))).any())),
        "mean": ("mean", mean, mean < MEAN and (LEVEL - mean) / error > Z),
    }


def _alarms(of: Gathered) -> _Judgement:
    p_values = of.array("p_value")
    there = ~np.isnan(p_values)
    if not there.any():
        return {}
    windows = np.maximum(there.sum(axis=0), 1)
    rates = ((p_values <= ALPHA) & there).sum(axis=0) / windows
    # The number of alarms is binomial; its upper tail is longer than the normal one, which half an alarm makes up for.
    z = (rates - ALPHA - 0.5 / windows) / np.sqrt(ALPHA * (1 - ALPHA) / windows)
    broken = bool(((rates > ALARMS) & (z > quantile(len(rates)) + 0.5)).any())
    return {"alarms": ("alarms", float(rates.max()), broken)}


def _inside(of: Gathered) -> _Judgement:
    values, low, high = of.array("values"), of.array("low"), of.array("high")
    there = ~np.isnan(low)
    if not there.any():
        return {}
    slack = 1e-9 * np.maximum(np.abs(values[there]), 1)
    outside = (values[there] < low[there] - slack) | (values[there] > high[there] + slack)
    return {"inside": ("outside", float(outside.mean()), bool(outside.any()))}
