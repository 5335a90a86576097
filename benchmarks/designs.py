"""How accurate the utility-optimized mechanisms are on the census, by formula and by reports, and how fast uHR counts.

    python -m benchmarks.designs --windows 20

The truth is the census (400 values, 76 of them sensitive). A row is the mean squared error of the unbiased estimate,
summed over the values, as a ratio to the best of uRR, uRAP and uOUE, by the formula of the channel. ``reports`` is the
error that reports of devices have, divided by the formula. ``l1`` is the expected l1 error, as a ratio to that of uRAP.
"""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec

CENSUS = Path(__file__).parents[1] / "examples" / "census"
PRIOR = ("urr", "urap", "uoue")
MECHANISMS = (*PRIOR, "urap, theta: auto", "uhr", "uss", "ubd")
EPSILONS = (0.5, 1.0, 2.0, 3.0)
WINDOWS, USERS = 20, 20_000
_COUNTED, _REPEATS = 1_000_000, 15


def collection(name: str, epsilon: float) -> tuple[LdpProtocol, Floats]:
    """Return the protocol of a mechanism on the census, and the shares of its values."""
    mechanism, auto = name.split(",")[0], {"theta": "auto"} if "auto" in name else {}
    keys = yaml.safe_load((CENSUS / "spec.yaml").read_text(encoding="utf-8"))
    keys |= {"mechanism": {"name": mechanism, "epsilon": epsilon, **auto}, "estimator": "auto"}
    spec = CollectionSpec.parse(keys, base=CENSUS)
    return build_protocol(spec), Truth.load(CENSUS / "truth.csv", spec).intermediate()


def squared_error(protocol: LdpProtocol, r: Floats, windows: int) -> float:
    """Return the mean squared error of the unbiased estimate over windows of ``USERS`` reports, summed over values."""
    rng, total = np.random.default_rng(8), 0.0
    for _ in range(windows):
        symbols = rng.choice(len(r), USERS, p=r / r.sum())
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
        total += float(((protocol.decoder.linear(cells, USERS).values - r) ** 2).sum())
    return total / windows


def rows(epsilon: float, windows: int) -> dict[str, tuple[float, float, float]]:
    """Return for each mechanism the ratio of squared errors, reports by formula, and the ratio of l1."""
    found = {}
    for name in MECHANISMS:
        protocol, r = collection(name, epsilon)
        assert isinstance(protocol.decoder, PureDecoder)
        channel = protocol.decoder.channel
        formula = float(channel.variance(r, USERS).sum())
        found[name] = formula, squared_error(protocol, r, windows) / formula, channel.expected_l1(r, USERS)
    best, l1 = min(found[name][0] for name in PRIOR), found["urap"][2]
    return {name: (formula / best, reports, error / l1) for name, (formula, reports, error) in found.items()}


def counting_ratio(name: str, other: str) -> float:
    """Return the CPU time of counting reports of one mechanism, as a ratio to that of another: least of many."""
    counts = [_counting(each) for each in (name, other)]
    times = [[_cpu(count) for count in counts] for _ in range(_REPEATS)]
    one, two = np.min(times, axis=0)
    return float(one / two)


def _counting(name: str) -> Callable[[], object]:
    protocol, r = collection(name, 1.0)
    rng = np.random.default_rng(9)
    payloads = protocol.mechanism.perturb(rng.choice(len(r), _COUNTED, p=r / r.sum()), rng)

    def count() -> object:
        assert protocol.mechanism.possible(payloads).all()
        return protocol.decoder.linear(protocol.mechanism.statistic(payloads), _COUNTED).values

    return count


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print a Markdown table."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print("| ε | mechanism | MSE / best of uRR, uRAP, uOUE | reports / formula | l1 / uRAP |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for epsilon in EPSILONS:
        for name, (ratio, reports, l1) in rows(epsilon, windows).items():
            print(f"| {epsilon:g} | {name} | {ratio:.2f} | {reports:.2f} | {l1:.2f} |")
    for name in ("uhr", "ubd"):
        print(f"\nCPU time to check, count and estimate {_COUNTED:,} reports, {name} / urr: ", end="")
        print(f"{counting_ratio(name, 'urr'):.2f}")


if __name__ == "__main__":
    main()
