"""The sketch of payloads: equal ones are found at a share that no test of the counts sees, and honest ones are not."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import examples
from uldp.collector.repeats import CELLS, MOST_OF_A_CELL, Sketched, cell_share, payload_cells, repeats_p_value
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.protocol.mechanism import Mechanism
from uldp.schemas.arrays import Packed, Payloads

N, EQUAL = 20_000, 200


def mechanism_of(name: str, size: int = 100, epsilon: float = 1.0, **keys: Any) -> Mechanism:
    spec = build.spec(domain={"size": size}, mechanism={"name": name, "epsilon": epsilon, **keys})
    return build_protocol(spec).mechanism


def most_alike(payloads: Payloads) -> int:
    return int(np.bincount(payload_cells(cast(Packed, payloads)), minlength=CELLS).max())


SKETCHED = ["sue", "oue", "the", "she", "ss", "olh", "levels"]


@pytest.mark.parametrize("name", SKETCHED)
def test_200_equal_payloads_of_20_000_are_improbable_and_honest_ones_are_not(name: str) -> None:
    keys: dict[str, Any] = {"name": name, "epsilon": 1.0}
    if name == "levels":
        keys = {"name": name, "of": {"name": "oue"}, "levels": {"a": {"epsilon": 0.5}, "b": {"epsilon": 1.0}}}
        keys["levels"] = {level: each | {"share": 0.5} for level, each in keys["levels"].items()}
    mechanism = build_protocol(build.spec(domain={"size": 100}, mechanism=keys)).mechanism
    sketched = Sketched.of(mechanism)
    assert sketched is not None
    rng = np.random.default_rng(3)
    payloads = mechanism.perturb(np.full(N, mechanism.size - 1), rng)  # all hold one value: the most alike
    assert payloads.dtype == np.uint8
    assert repeats_p_value(most_alike(payloads), N, sketched.share) > 1e-4
    payloads[:EQUAL] = payloads[0]
    assert repeats_p_value(most_alike(payloads), N, sketched.share) < ALARM_LEVEL


@pytest.mark.parametrize(
    "mechanism",
    [
        mechanism_of("rr"),
        mechanism_of("hrr"),
        mechanism_of("oue", size=12),
        mechanism_of("oue", epsilon=6.0),
        mechanism_of("oue", lasting_epsilon=3.0),
        mechanism_of("ss", size=12),
    ],
    ids=["symbols", "many symbols", "few bits", "little noise", "kept responses", "few sets"],
)
def test_payloads_that_honest_devices_repeat_have_no_sketch(mechanism: Mechanism) -> None:
    assert Sketched.of(mechanism) is None


EXACT = [name for name, each in examples().items() if not each.protocol.mechanism.memory]


def repeated(mechanism: Mechanism, symbols: Sequence[int], rng: np.random.Generator) -> tuple[float, float, float]:
    """Return how often two reports of these symbols are equal, the most probable payload, and the error of the former.

    From the law of reports where that is known, and else from 20,000 reports of each symbol.
    """
    equal, most, error, n = 0.0, 0.0, 0.0, 20_000
    for symbol in symbols:
        held = symbol + np.arange(mechanism.held)
        one = np.zeros(mechanism.size if mechanism.size <= 1 << 16 else 0)
        one[held[:1] if len(one) else []] = 1
        law = mechanism.law(one) if len(one) and mechanism.held == 1 and not mechanism.parts else None
        if law is None:
            rows = np.tile(held, (n, 1))
            payloads = mechanism.perturb(rows[:, 0] if mechanism.held == 1 else rows, rng)
            _, counts = np.unique(payloads.reshape(n, -1), axis=0, return_counts=True)
            squares, largest = float((counts * (counts - 1.0)).sum()) / n / (n - 1), counts.max() / n
            error = 5 * math.sqrt(2 * squares / n**2 + 4 * max(largest, 1 / n) * squares / n) + 20 / n**2
        else:
            squares, largest = float(law @ law), float(law.max())
        equal, most = max(equal, squares), max(most, float(largest))
    return equal, most, error


@pytest.mark.parametrize("name", EXACT)
def test_two_reports_are_equal_as_seldom_as_a_mechanism_says_and_hardly_seldomer(name: str) -> None:
    """The bound is exact but for bits, of which it takes each as the one that repeats more, and where it is 1."""
    mechanism = examples()[name].protocol.mechanism
    symbols = sorted({0, min(1, mechanism.size - mechanism.held), mechanism.size - mechanism.held})
    equal, most, error = repeated(mechanism, symbols, np.random.default_rng(12))
    assert equal <= mechanism.repeat_probability + error + 1e-12
    assert most <= mechanism.largest_probability + 6 * math.sqrt(mechanism.largest_probability / 20_000) + 5e-4
    if 1e-4 < mechanism.repeat_probability < 1 and name != "she":  # has further noise
        assert mechanism.repeat_probability <= 3 * (equal + error)


def test_strata_are_sketched_by_the_parts_whose_payloads_are_seldom() -> None:
    """Users of ``sizes`` send one of few ranges, which repeat; those who send items do not."""
    domain = {"set": {"of": {"size": 50}, "at_most": 3}}
    mechanism = {"name": "set-ss", "epsilon": 1.0, "sizes": 0.5}
    strata = build_protocol(build.spec(domain=domain, mechanism=mechanism)).mechanism
    sketched = Sketched.of(strata)
    assert sketched is not None
    assert sketched.share == cell_share(strata.parts[0]) < MOST_OF_A_CELL < cell_share(strata.parts[1])
    rng = np.random.default_rng(1)
    of_items = strata.perturb(np.tile([0, 1, 2], (300, 1)), rng)
    of_sizes = strata.perturb(np.full((200, 3), strata.first_symbols[1]), rng)
    rows = sketched.rows(cast(Packed, np.concatenate([of_items, of_sizes])))
    assert rows.tolist() == [True] * 300 + [False] * 200


@pytest.mark.parametrize("width", [1, 5, 7, 8, 9, 13, 16, 79, 513])
def test_a_cell_follows_from_the_bytes_of_a_payload_alone(width: int) -> None:
    rng = np.random.default_rng(width)
    payloads = rng.integers(0, 256, (3000, width), dtype=np.uint8)
    cells = payload_cells(payloads)
    assert cells.max() < CELLS
    np.testing.assert_array_equal(payload_cells(payloads[1234:1240]), cells[1234:1240])
    changed = payloads.copy()
    changed[np.arange(3000), np.arange(3000) % width] ^= 1 << (np.arange(3000) % 8).astype(np.uint8)
    assert (payload_cells(changed) == cells).mean() < 0.005  # one bit of another payload chooses another cell


@pytest.mark.parametrize("width", [5, 13, 79])
def test_cells_are_even_although_payloads_are_alike(width: int) -> None:
    """Payloads that count upwards in one place, and are 0 elsewhere."""
    payloads = np.zeros((40_000, width), dtype=np.uint8)
    payloads[:, width // 2 : width // 2 + 2] = np.arange(40_000, dtype="<u2").view(np.uint8).reshape(-1, 2)
    counts = np.bincount(payload_cells(payloads), minlength=CELLS)
    expected = 40_000 / CELLS
    assert ((counts - expected) ** 2).sum() / expected < CELLS + 8 * np.sqrt(2 * CELLS)
