"""``vectors.json`` holds values of mechanisms that clients in other languages can be held against."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.block import Block
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.duchi import Duchi
from uldp.mechanisms.local_hashing import LocalHashing, hash_symbols
from uldp.mechanisms.projective_response import ProjectiveResponse
from uldp.mechanisms.strata import Strata
from uldp.mechanisms.subset_selection import SubsetSelection
from uldp.schemas.arrays import Payloads

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))


def payloads(value: int | str) -> Payloads:
    """One payload: a symbol, or bytes in hex."""
    if isinstance(value, int):
        return np.array([value], dtype=np.uint32)
    return np.frombuffer(bytes.fromhex(value), dtype=np.uint8)[np.newaxis]


def split_mix(seed: int, symbol: int) -> int:
    """The hash in exact integers, as docs/client.md gives it."""
    z = ((seed << 32) + (symbol + 1) * 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


@pytest.mark.parametrize("vector", VECTORS["olh"], ids=lambda each: f"{each['seed']}-{each['symbol']}")
def test_a_seed_hashes_a_symbol_into_a_bucket(vector: dict[str, Any]) -> None:
    seed, symbol, buckets = vector["seed"], vector["symbol"], vector["buckets"]
    assert f"{split_mix(seed, symbol):016x}" == vector["hash"]
    assert split_mix(seed, symbol) % 2**32 * buckets >> 32 == vector["bucket"]
    assert hash_symbols(np.array([seed]), np.array([symbol]), buckets).tolist() == [vector["bucket"]]
    supported = LocalHashing(symbol + 1, 1.0, buckets).statistic(payloads(vector["payload"]))
    assert supported[symbol] == 1


@pytest.mark.parametrize("vector", VECTORS["ss"], ids=lambda each: f"{each['size']}-{each['epsilon']}")
def test_a_set_has_this_size_and_these_bits(vector: dict[str, Any]) -> None:
    mechanism = SubsetSelection(vector["size"], vector["epsilon"])
    assert mechanism.chosen == vector["members"]
    assert mechanism.noise_probability == pytest.approx(vector["noise_probability"], rel=1e-15)
    assert mechanism.possible(payloads(vector["payload"])).all()
    assert np.flatnonzero(mechanism.statistic(payloads(vector["payload"]))).tolist() == vector["set"]


@pytest.mark.parametrize("vector", VECTORS["block"], ids=lambda each: f"{each['epsilon']}-{each['width']}")
def test_a_block_has_these_integers(vector: dict[str, Any]) -> None:
    block = Block(vector["epsilon"], vector["bins"], vector["width"])
    assert (block.width, block.statistic_size) == (vector["block"], vector["outputs"])
    assert block.noise * 2**53 == int(vector["noise_below"])


@pytest.mark.parametrize("vector", VECTORS["duchi"], ids=lambda each: str(each["epsilon"]))
def test_a_bit_is_flipped_with_this_probability(vector: dict[str, Any]) -> None:
    assert Duchi(vector["epsilon"]).flip_probability == pytest.approx(vector["flip_probability"], rel=1e-15)


@pytest.mark.parametrize("vector", VECTORS["records"], ids=lambda each: each["name"])
def test_a_payload_of_a_record_is_that_of_its_attribute(vector: dict[str, Any]) -> None:
    strata = build_protocol(build.spec(domain=vector["domain"], mechanism=vector["mechanism"])).mechanism
    assert isinstance(strata, Strata)
    for example in vector["examples"]:
        payload = payloads(example["payload"])
        assert strata.possible(payload).all()
        for name, part, (cells, n) in zip(
            vector["domain"]["record"], strata.parts, strata.split_cells(strata.statistic(payload)), strict=True
        ):
            assert n == (name == example["attribute"])
            assert cells.tolist() == (part.statistic(payloads(example["own"])) if n else 0 * cells).tolist()


@pytest.mark.parametrize("vector", VECTORS["zones"], ids=lambda each: f"{each['zones']}-{each['zone_epsilon']}")
def test_a_zone_has_these_points(vector: dict[str, Any]) -> None:
    response = ProjectiveResponse(vector["zones"], vector["zone_epsilon"])
    assert response.points == vector["points"]
    assert response.hyperplanes[-1].tolist() == vector["last_plane"]
    assert response.uniform_probability == pytest.approx(vector["uniform_probability"], rel=1e-15)
    assert response.points * response.on_plane == pytest.approx(vector["weight"], rel=1e-15)
