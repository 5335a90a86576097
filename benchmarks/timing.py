"""Whether the time that a report takes tells noise from truth, or one value from another.

    python -m benchmarks.timing --calls 10000

A report of one device is drawn by the system's randomness and timed, again and again. For each mechanism the table has
the area under the curve (AUC) of two guesses from the time alone: whether the report supports its true value, and which
of two values the device held. A guess by chance has .5. Calls of both values alternate, so that other work on the
machine meets both alike. The budget is such that about half of the reports support their value.
"""

import time
from collections.abc import Callable, Mapping

import numpy as np
from scipy.stats import rankdata

from benchmarks.options import read_options
from uldp.mechanisms.devices.randomness import SystemRandomness
from uldp.mechanisms.families.block.randomizer import Block
from uldp.mechanisms.families.duchi.randomizer import GRID, Duchi
from uldp.mechanisms.families.folds.randomizer import HadamardResponse, LinearHashing, ProjectiveGeometryResponse
from uldp.mechanisms.families.geometric.randomizer import Geometric
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import BlockResponse, SubsetSelection
from uldp.mechanisms.families.summation.randomizer import Summation
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding
from uldp.mechanisms.kernels.block_designs import CyclicDesign, HadamardDesign
from uldp.mechanisms.kernels.designs import design_of
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Floats, Mask, Payloads

CALLS = 10_000
SIZE = 17
#: At this budget a report by randomized response over 17 symbols is noise with probability 1/2.
EPSILON = float(np.log(SIZE + 1))

_ALL = np.ones(SIZE, dtype=np.bool_)
_SOME = np.arange(SIZE) < SIZE - 1

MECHANISMS: Mapping[str, Callable[[], Mechanism]] = {
    "rr": lambda: RandomizedResponse(_ALL, EPSILON),
    "urr": lambda: RandomizedResponse(_SOME, EPSILON),
    "rr, memoized": lambda: Memoized(RandomizedResponse(_ALL, 2 * EPSILON), RandomizedResponse(_ALL, EPSILON)),
    "oue": lambda: UnaryEncoding(_ALL, EPSILON, OUE_THETA),
    "uoue": lambda: UnaryEncoding(_SOME, EPSILON, OUE_THETA),
    "uhr": lambda: BlockResponse(_SOME, 1.0, HadamardDesign(SIZE - 1)),
    "uss": lambda: SubsetSelection(SIZE, 1.0, sensitive=_SOME),
    "ubd": lambda: BlockResponse(_SOME, 1.0, CyclicDesign(design_of(5, SIZE - 1, SIZE))),
    "ss": lambda: SubsetSelection(SIZE, 1.0),
    "olh": lambda: LocalHashing(SIZE, 1.0),
    "hrr": lambda: HadamardResponse(SIZE, 1.0),
    "linear-olh": lambda: LinearHashing(SIZE, 1.0),
    "pgr": lambda: ProjectiveGeometryResponse(SIZE, 1.0),
    "she": lambda: Summation(SIZE, 1.0),
    "duchi": lambda: Duchi(0.1),
    "block": lambda: Block(1.0, SIZE, "auto"),
    "geometric": lambda: Geometric(1.0, 16),
}


def area(times: Floats, positive: Mask) -> float:
    """Return the probability that a time of one group is above a time of the other, from 1/2 on; ties count half.

    Without a time in both groups there is nothing to guess: 1/2.
    """
    n = int(positive.sum())
    if n in (0, len(times)):
        return 0.5
    ranks = rankdata(times)[positive].sum()
    found = float((ranks - n * (n + 1) / 2) / (n * (len(times) - n)))
    return max(found, 1 - found)


def measure(mechanism: Mechanism, calls: int = CALLS) -> tuple[float, float]:
    """Time one report of one device ``calls`` times.

    Returns:
        The AUC of noise against truth, and of the first symbol against the last one.
    """
    randomness, symbols = SystemRandomness(), (0, mechanism.size - 1)
    inputs = [np.array([symbol]) for symbol in symbols]
    times, payloads = np.empty(calls), []
    for call in range(-calls // 10, calls):  # those below 0 are not counted: caches and clocks get warm
        value = inputs[call % 2]
        began = time.perf_counter_ns()
        payload = mechanism.perturb(value, randomness)
        took = time.perf_counter_ns() - began
        if call >= 0:
            times[call] = took
            payloads.append(payload)
    # Each value alone, because noise and truth must not be told apart for either; the worse of both.
    held = np.arange(calls) % 2
    # Not before all calls are made: what a payload says must not leave its traces in the caches of the next call.
    true = np.array([_supports(mechanism, payload, symbols[call % 2]) for call, payload in enumerate(payloads)])
    return max(area(times[held == each], true[held == each]) for each in (0, 1)), area(times, held == 1)


def _supports(mechanism: Mechanism, payload: Payloads, symbol: int) -> bool:
    """Return whether a report speaks for the true symbol of its device."""
    if isinstance(mechanism, Memoized):
        return _supports(mechanism.once, payload, symbol)
    if isinstance(mechanism, PureMechanism):
        return bool(mechanism.fold(mechanism.statistic(payload))[symbol])
    if isinstance(mechanism, Summation):
        return bool(mechanism.statistic(payload)[symbol] > 0)
    if isinstance(mechanism, Block):
        return symbol <= int(payload[0]) < symbol + mechanism.width
    return bool(payload[0]) == (symbol == GRID)


def main() -> None:
    """Print the table."""
    calls = read_options(__doc__, calls=CALLS).calls
    print(f"AUC of {calls:,} calls each     noise or truth     one value or another")
    for name, build in MECHANISMS.items():
        truth, value = measure(build(), calls)
        print(f"{name:28}{truth:18.3f}{value:25.3f}", flush=True)


if __name__ == "__main__":
    main()
