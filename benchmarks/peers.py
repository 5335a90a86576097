"""Against the libraries that a user would pick: pure-ldp and multi-freq-ldpy, on the same reports.

    python -m benchmarks.peers

The server's side only: from reports that are in memory, already obfuscated, to the estimate of every value. Each gets
them in the form that its own client makes: packed bits here, an integer vector for each report for pure-ldp, one of
floats for multi-freq-ldpy; symbols are a list of numbers for both. What they estimate must agree.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from benchmarks.rows import Row, in_turn, print_table, timed
from benchmarks.workloads import EPSILON, SIZE
from uldp.mechanisms.estimators.by_name import empirical
from uldp.mechanisms.families.randomized_response.randomizer import RandomizedResponse
from uldp.mechanisms.families.unary_encoding.randomizer import OUE_THETA, UnaryEncoding, sue_theta
from uldp.mechanisms.protocol.mechanism import PureMechanism
from uldp.schemas.arrays import Floats, Payloads

#: Of symbols, and of bits: 625 numbers each for the peers.
SYMBOLS, BITS = 1_000_000, 20_000
REPEAT = 3
INSTALL = "not installed: pip install '.[bench]'"

Server = Callable[[], Floats]


def protocols() -> dict[str, PureMechanism]:
    """Return the protocols that all three have, by name."""
    everything = np.ones(SIZE, dtype=np.bool_)
    return {
        "GRR": RandomizedResponse(everything, EPSILON),
        "OUE": UnaryEncoding(everything, EPSILON, OUE_THETA),
        "SUE": UnaryEncoding(everything, EPSILON, sue_theta(EPSILON)),
    }


def ours(mechanism: PureMechanism, payloads: Payloads) -> Floats:
    """Count support, and estimate without bias."""
    return empirical(mechanism.channel, mechanism.statistic(payloads), len(payloads))


def pure_ldp(protocol: str, payloads: Payloads) -> Server:
    """Return the server of pure-ldp; it too estimates without bias.

    Raises:
        ImportError: if it is not installed.
    """
    package = "pure_ldp.frequency_oracles"
    if protocol == "GRR":
        server = import_module(f"{package}.direct_encoding").DEServer(EPSILON, SIZE)
    else:
        server = import_module(f"{package}.unary_encoding").UEServer(EPSILON, SIZE, use_oue=protocol == "OUE")
    reports = as_vectors(payloads, np.int64)

    def aggregate() -> Floats:
        server.reset()
        server.aggregate_all(reports)
        estimates: Floats = server.estimate_all(range(1, SIZE + 1), suppress_warnings=True)
        return estimates / len(reports)

    return aggregate


def multi_freq_ldpy(protocol: str, payloads: Payloads) -> Server:
    """Return the aggregator of multi-freq-ldpy; it raises what is negative to zero, and scales to a sum of one.

    Raises:
        ImportError: if it is not installed.
    """
    package = "multi_freq_ldpy.pure_frequency_oracles"
    reports = as_vectors(payloads, np.float64)
    if protocol == "GRR":
        return partial(import_module(f"{package}.GRR").GRR_Aggregator_MI, reports, SIZE, EPSILON)
    return partial(import_module(f"{package}.UE").UE_Aggregator_MI, reports, EPSILON, protocol == "OUE")


def as_vectors(payloads: Payloads, dtype: type[np.generic]) -> list[Any]:
    """Return symbols as numbers, and packed bits as a vector for each report."""
    if payloads.ndim == 1:
        return list(payloads.tolist())
    bits = cast(npt.NDArray[np.uint8], payloads)
    return list(np.unpackbits(bits, axis=1, count=SIZE).astype(dtype))


PEERS: dict[str, tuple[Callable[[str, Payloads], Server], Callable[[Floats], Floats]]] = {
    "pure-ldp": (pure_ldp, lambda estimate: estimate),
    "multi-freq-ldpy": (multi_freq_ldpy, lambda estimate: np.maximum(estimate, 0) / np.maximum(estimate, 0).sum()),
}


def rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure every protocol; ``quick`` takes a tenth of the reports.

    Raises:
        AssertionError: if a peer estimates something else.
    """
    rng = np.random.default_rng(3)
    for protocol, mechanism in protocols().items():
        n = (BITS if mechanism.form.width else SYMBOLS) // (10 if quick else 1)
        payloads = mechanism.perturb(rng.integers(0, SIZE, n), rng)
        servers: dict[str, Server] = {"uldp-stream": partial(ours, mechanism, payloads)}
        missing = []
        for peer, (server_of, processed) in PEERS.items():
            try:
                servers[peer] = server_of(protocol, payloads)
            except ImportError:
                missing.append(peer)
                continue
            expected = processed(servers["uldp-stream"]())
            assert np.allclose(servers[peer](), expected, rtol=0, atol=1e-9), f"{peer} estimates {protocol} differently"
        seconds = in_turn({name: partial(timed, server) for name, server in servers.items()}, REPEAT)
        for name, taken in seconds.items():
            remark = (
                "" if name == "uldp-stream" else f"uldp-stream: {taken / seconds['uldp-stream']:,.0f} times as fast"
            )
            yield Row("peers", f"{protocol}, {name}", n, taken, remark=remark)
        for peer in missing:
            yield Row("peers", f"{protocol}, {peer}", n, None, remark=INSTALL)


if __name__ == "__main__":
    print_table(rows())
