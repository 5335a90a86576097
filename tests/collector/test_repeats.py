"""The sketch of payloads: equal ones are found at a share that no test of the counts sees, and honest ones are not."""

import math
from typing import Any, cast

import numpy as np
import pytest

from tests import build
from tests.mechanisms.protocols import examples
from uldp.collector.repeats import CELLS, is_sketched, payload_cells, repeats_p_value
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.subset_selection.randomizer import SubsetSelection
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.protocol.mechanism import Mechanism, PureMechanism
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
    assert is_sketched(mechanism)
    rng = np.random.default_rng(3)
    payloads = mechanism.perturb(np.full(N, mechanism.size - 1), rng)  # all hold one value: the most alike
    assert payloads.dtype == np.uint8
    assert repeats_p_value(most_alike(payloads), N, mechanism.repeat_probability) > 1e-4
    payloads[:EQUAL] = payloads[0]
    assert repeats_p_value(most_alike(payloads), N, mechanism.repeat_probability) < ALARM_LEVEL


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
    assert not is_sketched(mechanism)


@pytest.mark.parametrize(("name", "example"), examples().items())
def test_no_more_payloads_repeat_than_a_mechanism_says(name: str, example: Any) -> None:
    mechanism, rng, n = example.protocol.mechanism, np.random.default_rng(6), 1500
    for symbol in {0, 1, mechanism.size - mechanism.held}:
        held = np.tile(np.arange(symbol, symbol + mechanism.held), (n, 1))
        payloads = mechanism.perturb(held[:, 0] if mechanism.held == 1 else held, rng)
        _, counts = np.unique(payloads.reshape(n, -1), axis=0, return_counts=True)
        pairs, most = int((counts * (counts - 1)).sum()) / 2, n * (n - 1) / 2 * mechanism.repeat_probability
        assert pairs <= most + 8 * np.sqrt(most * (1 + n * mechanism.repeat_probability)) + 8


@pytest.mark.parametrize("name", ["oue", "sue"])
def test_two_reports_of_bits_are_equal_as_often_as_all_payloads_say(name: str) -> None:
    mechanism = mechanism_of(name, size=8)
    assert isinstance(mechanism, PureMechanism)
    channel = mechanism.channel
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)
    p, q = float(channel.p[0]), float(channel.q[0])
    of_each = [float((np.where(bits == 1, each, 1 - each).prod(axis=1) ** 2).sum()) for each in (p, q)]
    assert mechanism.repeat_probability == pytest.approx(max(of_each))


def test_no_set_comes_more_often_than_epsilon_lets_it() -> None:
    mechanism = mechanism_of("ss", size=12)
    assert isinstance(mechanism, SubsetSelection)
    sets = math.comb(12, mechanism.chosen)
    holding = math.comb(11, mechanism.chosen - 1)  # sets with the value of the device are e times as likely
    likely = math.e / (math.e * holding + sets - holding)
    assert likely <= mechanism.repeat_probability == pytest.approx(math.e / sets)


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
