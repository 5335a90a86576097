"""How far each estimator is from the truth: wls against norm-sub, and auto against wls, norm-sub and mle.

    python -m benchmarks.accuracy --windows 20

Truths are the census (400 values, 76 of them sensitive), the check-ins of Manhattan behind their tags (625 values, two
tags, whose background the estimate knows), and 100 values, every fifth of them sensitive, with shares that are equal,
in the ratio of 1, 1/2, 1/3, ..., or almost all with few values (Dirichlet). Each is measured with several mechanisms,
epsilon and n. Counts are drawn without reports. A row is the mean, and the worst, of the ratios of its settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.estimators.by_name import estimate_intermediate
from uldp.mechanisms.inference.forecast import draw_counts, equal_shares, falling_shares
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec

EXAMPLES = Path(__file__).parents[1] / "examples"
WINDOWS = 20

MECHANISMS: tuple[str, ...] = ("rr", "oue", "ss", "urr", "urap", "uoue")
UTILITY_OPTIMIZED: tuple[str, ...] = ("urr", "urap", "uoue")
EPSILONS, USERS = (0.1, 0.5, 1.0, 2.0, 4.0), (1_000, 10_000, 100_000, 1_000_000)
TRUTHS = ("census", "manhattan", "equal", "falling", "sparse")


@dataclass(frozen=True)
class Setting:
    """What is measured: a truth, a mechanism, epsilon and the number of reports in a window."""

    truth: str
    mechanism: str
    epsilon: float
    users: int

    def errors(self, estimators: tuple[str, ...], windows: int) -> dict[str, Floats]:
        """Return the mean l1 and l2 errors of each estimator over windows, shape (2,)."""
        decoder, r = _collection(self.truth, self.mechanism, self.epsilon)
        truth, rng, bots = decoder.pum.distribution(r), np.random.default_rng(self.users), len(decoder.pum.tags)
        errors: dict[str, list[tuple[float, float]]] = {name: [] for name in estimators}
        for _ in range(windows):
            counts = draw_counts(decoder.channel, r, self.users, rng)
            for name in estimators:
                r_hat = estimate_intermediate(name, decoder.channel, counts, self.users, bots)
                error = decoder.pum.distribution(r_hat) - truth
                errors[name].append((float(np.abs(error).sum()), float(np.linalg.norm(error))))
        return {name: np.mean(each, axis=0) for name, each in errors.items()}


def settings() -> Iterator[Setting]:
    """Yield all settings; plain mechanisms have no tags, and so no Manhattan."""
    for truth in TRUTHS:
        for mechanism in UTILITY_OPTIMIZED if truth == "manhattan" else MECHANISMS:
            yield from (Setting(truth, mechanism, epsilon, users) for epsilon in EPSILONS for users in USERS)


@cache
def _collection(truth: str, mechanism: str, epsilon: float) -> tuple[PureDecoder, Floats]:
    """Return the decoder, and the distribution of true symbols over Z."""
    folder = EXAMPLES / truth
    keys: dict[str, Any] = {"collection": "c", "version": 1, "window": {"size": "1d"}, "domain": {"size": 100}}
    if folder.exists():
        keys = yaml.safe_load((folder / "spec.yaml").read_text(encoding="utf-8"))
    keys |= {"mechanism": {"name": mechanism, "epsilon": epsilon}, "estimator": "auto"}
    if mechanism not in UTILITY_OPTIMIZED:
        keys["sensitive"] = "all"
    elif not folder.exists():
        keys["sensitive"] = list(range(0, 100, 5))
    spec = CollectionSpec.parse(keys, base=folder)
    decoder = build_protocol(spec).decoder
    assert isinstance(decoder, PureDecoder)
    if folder.exists():
        return decoder, Truth.load(folder / "truth.csv", spec).intermediate()
    sparse = np.random.default_rng(5).dirichlet(np.full(100, 0.05))
    return decoder, {"equal": equal_shares(100), "falling": falling_shares(100), "sparse": sparse}[truth]


def ratios(measured: dict[Setting, dict[str, Floats]], of: str, to: str) -> Floats:
    """Return the ratios of the errors of two estimators, shape (settings, 2): l1 and l2."""
    return np.array([errors[of] / errors[to] for errors in measured.values() if {of, to} <= errors.keys()])


def measure(windows: int, only: tuple[str, ...] = TRUTHS) -> dict[Setting, dict[str, Floats]]:
    """Measure all settings of some truths; mle where it is."""
    return {
        setting: setting.errors(
            ("norm-sub", "wls", "auto", "threshold", *(("mle",) if setting.mechanism in {"rr", "urr"} else ())), windows
        )
        for setting in settings()
        if setting.truth in only
    }


def main() -> None:
    """Print a Markdown table."""
    measured = measure(read_options(__doc__, windows=WINDOWS).windows)
    print("| truth | mechanisms | settings | ratio | l1: mean | worst | l2: mean | worst |")
    print("| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for truth in (*TRUTHS, "all"):
        for plain in (True, False):
            chosen = {
                setting: errors
                for setting, errors in measured.items()
                if truth in {"all", setting.truth} and plain is (setting.mechanism not in UTILITY_OPTIMIZED)
            }
            names = ", ".join(dict.fromkeys(setting.mechanism for setting in chosen))
            for of, to in (("wls", "norm-sub"), ("auto", "wls"), ("auto", "mle")) if chosen else ():
                found = ratios(chosen, of, to)
                figures = np.ravel([np.exp(np.log(found).mean(axis=0)), found.max(axis=0)], order="F")
                row = " | ".join(f"{figure:.2f}" for figure in figures)
                print(f"| {truth} | {names} | {len(found)} | {of} / {to} | {row} |")


if __name__ == "__main__":
    main()
