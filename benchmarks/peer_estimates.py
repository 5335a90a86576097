"""What pure-ldp and multi-freq-ldpy estimate, and what uldp-stream does, from the same reports.

    python -m benchmarks.peer_estimates

Reports are drawn here and handed to each peer in the form of its own client, but for local hashing: there they are
hashed as the peers hash, with xxh32. The peers' servers estimate every value, and so does ``empirical`` from the
support counts. multi-freq-ldpy raises what is negative to zero, and scales to a sum of one; so is its counterpart. Of
its longitudinal protocols, the two rounds are compared with ``Memoized`` too.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from uldp.mechanisms.estimators.by_name import empirical
from uldp.mechanisms.families.folds.randomizer import HadamardResponse
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.families.summation.randomizer import Summation
from uldp.mechanisms.families.unary_encoding.randomizer import (
    OUE_THETA,
    UnaryEncoding,
    best_threshold,
    sue_theta,
    thresholding,
)
from uldp.mechanisms.kernels.hashing import default_buckets
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.arrays import Counts, Floats, Payloads

#: Values, a power of two because the Hadamard mechanism of pure-ldp needs one; reports; and the budgets in nats.
K, N, EPSILON, LASTING = 16, 3000, 1.0, 3.0
#: The most that two estimates may differ, by the order of their additions.
CLOSE = 1e-9

ALL = np.ones(K, dtype=np.bool_)
Server = Callable[[], Floats]
LONGITUDINAL = ("L_SUE", "L_OUE", "L_OSUE", "L_SOUE", "L_GRR")


class Pair(NamedTuple):
    """A protocol, the peer that has it, its estimates, and ours from the same reports."""

    protocol: str
    peer: str
    theirs: Server
    ours: Floats


def oracle(name: str) -> Any:
    """Return a module of pure-ldp."""
    return import_module(f"pure_ldp.frequency_oracles.{name}")


def multi_freq(name: str) -> Any:
    """Return a module of multi-freq-ldpy."""
    return import_module(f"multi_freq_ldpy.{name}")


def shares(server: Any, reports: Sequence[Any], size: int = K) -> Server:
    """Return what a server of pure-ldp estimates for ``size`` values."""

    def estimate() -> Floats:
        server.aggregate_all(reports)
        found = server.estimate_all(range(1, size + 1), suppress_warnings=True)
        return np.asarray(found, dtype=np.float64) / len(reports)

    return estimate


def on_simplex(estimate: Floats) -> Floats:
    """Raise what is negative to zero, and scale to a sum of one."""
    cut = np.maximum(estimate, 0.0)
    scaled: Floats = cut / cut.sum()
    return scaled


def unbiased(mechanism: PureMechanism, payloads: Payloads) -> Floats:
    """Count support, and estimate without bias."""
    supports = mechanism.fold(mechanism.statistic(payloads))
    return empirical(mechanism.channel, supports, len(payloads))


def bits(payloads: Payloads) -> list[Any]:
    """Return packed bits as a vector of floats for each report."""
    return list(np.unpackbits(payloads.astype(np.uint8), axis=1, count=K).astype(np.float64))


def of_symbols_and_bits(rng: np.random.Generator, values: Counts) -> Iterator[Pair]:
    """Yield randomized response, unary encodings and subset selection."""
    grr = RandomizedResponse(ALL, EPSILON)
    sent = grr.perturb(values, rng)
    server = oracle("direct_encoding").DEServer(EPSILON, K)
    aggregator = partial(multi_freq("pure_frequency_oracles.GRR").GRR_Aggregator_MI, sent.tolist(), K, EPSILON)
    yield Pair("DE, GRR", "pure-ldp", shares(server, sent.tolist()), unbiased(grr, sent))
    yield Pair("DE, GRR", "multi-freq-ldpy", aggregator, on_simplex(unbiased(grr, sent)))
    for protocol, theta in (("SUE", sue_theta(EPSILON)), ("OUE", OUE_THETA)):
        mechanism, optimal = UnaryEncoding(ALL, EPSILON, theta), protocol == "OUE"
        packed = mechanism.perturb(values, rng)
        server = oracle("unary_encoding").UEServer(EPSILON, K, use_oue=optimal)
        aggregator = partial(multi_freq("pure_frequency_oracles.UE").UE_Aggregator_MI, bits(packed), EPSILON, optimal)
        yield Pair(protocol, "pure-ldp", shares(server, bits(packed)), unbiased(mechanism, packed))
        yield Pair(protocol, "multi-freq-ldpy", aggregator, on_simplex(unbiased(mechanism, packed)))
    ss = SubsetSelection(K, EPSILON)
    packed = ss.perturb(values, rng)
    sets = [np.flatnonzero(each) for each in bits(packed)]
    aggregator = partial(multi_freq("pure_frequency_oracles.SS").SS_Aggregator_MI, sets, K, EPSILON)
    yield Pair("SS", "multi-freq-ldpy", aggregator, on_simplex(unbiased(ss, packed)))


def of_histograms(rng: np.random.Generator, values: Counts) -> Iterator[Pair]:
    """Yield THE and SHE."""
    theta = best_threshold(EPSILON)
    the = thresholding(ALL, EPSILON, theta)
    packed = the.perturb(values, rng)
    server = oracle("histogram_encoding").HEServer(EPSILON, K, use_the=True, theta=theta)
    yield Pair("THE", "pure-ldp", shares(server, bits(packed)), unbiased(the, packed))
    encoding = multi_freq("pure_frequency_oracles.HE")
    # It finds the best threshold up to 1e-5.
    found = minimize_scalar(encoding.find_tresh, bounds=[0.5, 1], method="bounded", args=(EPSILON,)).x
    assert abs(found - theta) < 1e-4, f"multi-freq-ldpy has the threshold {found} in place of {theta}"
    estimate = on_simplex(unbiased(thresholding(ALL, EPSILON, found), packed))
    aggregate = encoding.HE_Aggregator_MI
    yield Pair("THE", "multi-freq-ldpy", partial(aggregate, bits(packed), K, EPSILON), estimate)
    she = Summation(K, EPSILON)
    sums = she.perturb(values, rng)
    entries = list(sums.view("<i2").astype(np.float64))
    mean = she.statistic(sums) / N
    yield Pair("SHE", "pure-ldp", shares(oracle("histogram_encoding").HEServer(EPSILON, K), entries), mean)
    yield Pair("SHE", "multi-freq-ldpy", partial(aggregate, entries, K, EPSILON, use_thresh=False), on_simplex(mean))


def of_hashes(rng: np.random.Generator, values: Counts) -> Iterator[Pair]:
    """Yield local hashing, of which the supports are those of the peers' hash, and the Hadamard mechanism."""
    xxhash = import_module("xxhash")
    for protocol, buckets in (("BLH", 2), ("OLH", default_buckets(EPSILON))):
        mechanism = LocalHashing(K, EPSILON, buckets)
        seeds = rng.integers(0, 1 << 32, N).tolist()
        hashes = np.array([[xxhash.xxh32(str(z), seed=seed).intdigest() % buckets for z in range(K)] for seed in seeds])
        noisy = (rng.random(N) < mechanism.noise_probability) * rng.integers(1, buckets, N)
        sent = (hashes[np.arange(N), values] + noisy) % buckets
        estimate = empirical(mechanism.channel, (hashes == sent[:, np.newaxis]).sum(axis=0), N)
        reports, optimal = list(zip(sent.tolist(), seeds, strict=True)), protocol == "OLH"
        server = oracle("local_hashing").LHServer(EPSILON, K, g=buckets, use_olh=optimal)
        aggregator = partial(multi_freq("pure_frequency_oracles.LH").LH_Aggregator_MI, reports, K, EPSILON, optimal)
        yield Pair(protocol, "pure-ldp", shares(server, reports), estimate)
        yield Pair(protocol, "multi-freq-ldpy", aggregator, on_simplex(estimate))
    hrr = HadamardResponse(K, EPSILON)
    payloads = hrr.perturb(values, rng)
    # A report of the Hadamard mechanism is a list of rows, here one, each with 1 or -1.
    rows = [[(payload // 2, 1 - 2 * (payload % 2))] for payload in payloads.tolist()]
    server = oracle("hadamard_mechanism").HadamardMechServer(EPSILON, K, t=1)
    yield Pair("HRR (Hadamard mechanism, t = 1)", "pure-ldp", shares(server, rows), unbiased(hrr, payloads))


def of_permanent_responses(rng: np.random.Generator, values: Counts) -> Iterator[Pair]:
    """Yield the longitudinal protocols, which keep a permanent response and report it with noise.

    Raises:
        AssertionError: if the noise of the two rounds is not that of ``Memoized``.
    """
    for name in LONGITUDINAL:
        module, of_symbols = multi_freq(f"long_freq_est.{name}"), name == "L_GRR"
        rounds: list[tuple[float, ...]] = []
        invert = module.MI_long

        def keep(counts: Counts, n: int, *law: float, rounds: Any = rounds, invert: Any = invert) -> Any:
            rounds.append(law)
            return invert(counts, n, *law)

        module.MI_long = keep
        sizes = (K,) if of_symbols else ()
        aggregate = getattr(module, f"{name}_Aggregator_MI")
        aggregate([0] if of_symbols else [np.zeros(K)], *sizes, LASTING, EPSILON)
        p1, q1, p2, q2 = rounds[0]
        p, q = q2 + p1 * (p2 - q2), q2 + q1 * (p2 - q2)  # of both rounds together
        inner: RandomizedResponse | UnaryEncoding
        once: RandomizedResponse | UnaryEncoding
        if of_symbols:
            # Its formula for p2 gives a budget of one report that is below the one asked for, if K > 2.
            inner, once = RandomizedResponse(ALL, LASTING), RandomizedResponse(ALL, math.log(p / q))
            expected = [K * q2]
        else:
            budget = math.log(p * (1 - q) / ((1 - p) * q))
            assert abs(budget - EPSILON) < 1e-6, f"{name} spends {budget} a report"
            inner, once = UnaryEncoding(ALL, LASTING, p1), UnaryEncoding(ALL, budget, p)
            expected = [q2, 1 - p2]
        mechanism = Memoized(inner, once)
        noise = mechanism.noise if of_symbols else mechanism.noise[:, 0]
        assert np.allclose(noise, expected, rtol=0, atol=CLOSE), f"{name} has other noise in its second round"
        payloads = mechanism.perturb(values, rng)
        reports = payloads.tolist() if of_symbols else bits(payloads)
        aggregator = partial(aggregate, reports, *sizes, LASTING, EPSILON)
        estimate = empirical(once.channel, mechanism.statistic(payloads), N)
        yield Pair(name.replace("_", "-"), "multi-freq-ldpy", aggregator, on_simplex(estimate))


def differences() -> Iterator[tuple[str, str, float]]:
    """Yield a protocol, a peer, and how far its estimates are from ours at the most.

    Raises:
        AssertionError: if that is more than ``CLOSE``.
        ImportError: if a peer is not installed.
    """
    rng = np.random.default_rng(8)
    values = rng.choice(K, N, p=1 / np.arange(1, K + 1) / (1 / np.arange(1, K + 1)).sum())
    for part in (of_symbols_and_bits, of_histograms, of_hashes, of_permanent_responses):
        for pair in part(rng, values):
            difference = float(np.abs(pair.theirs() - pair.ours).max())
            assert difference < CLOSE, f"{pair.peer} estimates {pair.protocol} differently, by {difference:.3g}"
            yield pair.protocol, pair.peer, difference


def main() -> None:
    """Print a line for each protocol of each peer."""
    print("| protocol | peer | largest difference of two estimates |\n| --- | --- | ---: |")
    found = list(differences())
    for protocol, peer, difference in found:
        print(f"| {protocol} | {peer} | {difference:.1g} |")
    print(f"\n{len({protocol for protocol, _, _ in found})} protocols estimate alike.")


if __name__ == "__main__":
    main()
