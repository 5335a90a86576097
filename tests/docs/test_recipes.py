"""The recipes of docs/client, in examples/recipes, compute what the collector expects."""

from typing import Any

import numpy as np
import pytest

from examples.recipes import designs, hashes, integers, messages, numbers, records, sets, strings, vectors, zones
from tests import build
from tests.conformance.vectors import read
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.kernels.block_designs import difference_set
from uldp.mechanisms.kernels.designs import Design
from uldp.schemas import Report

HOURS = {"number": {"low": 0, "high": 24}}
N = 4000


#: The functions of the recipes, by name.
RECIPES: dict[str, Any] = {
    name: each
    for module in (designs, hashes, integers, numbers, records, sets, strings, zones)
    for name, each in vars(module).items()
}


def test_hashes_and_noise_are_those_of_the_vectors() -> None:
    for each in read("functions.json")["hash"]:
        assert RECIPES["bucket_of"](each["seed"], each["symbol"], each["buckets"]) == each["bucket"]
    for case in read("block.json")["cases"]:
        epsilon, known = case["spec"]["mechanism"]["epsilon"], case["probabilities"]
        if "grid" in known:  # without a permanent response
            noise = RECIPES["noise_below"](epsilon, known["grid"], known["width"])
            assert noise == known["uniform_probability"] * 2**53


@pytest.mark.parametrize(
    ("recipe", "arguments", "domain", "more"),
    [
        ("duchi", (17.3, 0, 24, 1.0), HOURS, {}),
        ("block", (17.3, 0, 24, 1.0, 16, 10), HOURS, {"bins": 16, "width": "piecewise"}),
        ("geometric", (17.3, 0, 24, 1.0, 16), HOURS, {}),
        ("olh", (3, 1.0, 4), {"size": 5}, {}),
        ("she", (3, 1.0, 5), {"size": 5}, {}),
        ("hrr", (3, 1.0, 5), {"size": 5}, {}),
        ("linear-olh", (3, 1.0, 5, 2), {"size": 20}, {}),
        ("pgr", (3, 1.0, 5, 3), {"size": 20}, {}),
        ("metric", (3, 6, 1.0, MetricMechanism(6, 1.0, 3).scale, 3), {"size": 6}, {"columns": 3}),
        ("metric", (3, 6, 1.0, MetricMechanism(6, 1.0).scale), {"size": 6}, {}),
    ],
)
def test_the_collector_finds_the_value_of_a_recipe(
    recipe: str, arguments: tuple[Any, ...], domain: Any, more: dict[str, Any]
) -> None:
    """Within 6 standard errors, which one run of 10^8 misses; the recipes draw from the system's randomness."""
    spec = build.spec(domain=domain, mechanism={"name": recipe, "epsilon": 1.0} | more)
    protocol = build_protocol(spec)
    sent = [RECIPES[recipe.replace("-", "_")](*arguments) for _ in range(N)]
    payloads = (
        np.array([list(each) for each in sent], np.uint8) if recipe in {"olh", "she"} else np.array(sent, np.uint32)
    )
    assert protocol.mechanism.possible(payloads).all()
    linear = protocol.decoder.linear(protocol.mechanism.statistic(payloads), N)
    truth = np.eye(domain["size"])[3] if "size" in domain else np.array([17.3])
    assert (np.abs(linear.values - truth) <= 6 * np.sqrt(linear.variance)).all()


@pytest.mark.parametrize(("g", "m", "w"), [(2, 3, 3), (3, 4, 13), (4, 3, 5), (5, 3, 6), (8, 3, 9)])
def test_a_recipe_finds_the_same_difference_sets(g: int, m: int, w: int) -> None:
    design = Design((g**m - 1) // (g - 1), w, (w - 1) // g, field=g, dimension=m)
    assert RECIPES["singer"](g, m) == difference_set(design).tolist()


@pytest.mark.parametrize("name", ["uhr", "ubd"])
@pytest.mark.parametrize("value", [1, 25])
def test_the_collector_finds_the_value_of_a_block(name: str, value: int) -> None:
    v = 22
    mechanism = {"name": name, "epsilon": 2.0}
    protocol = build_protocol(build.spec(domain={"size": 30}, sensitive=[*range(v)], mechanism=mechanism))
    arguments = (v, 2.0) if name == "uhr" else (RECIPES["singer"](5, 3), 31, 2.0)
    i, own = (value, 0) if value < v else (None, value - v)
    payloads = np.array([RECIPES[name](i, own, *arguments) for _ in range(N)], np.uint32)
    assert protocol.mechanism.possible(payloads).all()
    linear = protocol.decoder.linear(protocol.mechanism.statistic(payloads), N)
    assert (np.abs(linear.values - np.eye(30)[value]) <= 6 * np.sqrt(linear.variance) + 1e-9).all()


def test_each_recipe_gives_its_worked_example() -> None:
    assert hashes.bucket_of(1, 0, 4) == 2
    assert len(hashes.olh(3, 1.0, 4)) == 6
    assert [hashes.vector_of(point, 3) for point in range(5)] == [1, 3, 4, 5, 9]
    assert {hashes.pgr(0, 36.0, 3, 2) for _ in range(9)} == {1}
    assert {hashes.linear_olh(0, 36.0, 3, 2) % 3 for _ in range(9)} == {0}
    assert designs.singer(3, 3) == [0, 1, 3, 9]
    assert designs.singer(4, 3) == [3, 6, 7, 12, 14]
    assert designs.uhr(None, 2, 10, 60.0) == 18
    assert [numbers.duchi(x, 0, 24, 50) for x in (99, -99)] == [1, 0]
    assert numbers.block(99, 0, 24, 50, 4, 1) == 4
    assert len(integers.she(3, 1.0, 5)) == 10
    assert sum(integers.weights(7, 25, 0.5, 0.414, 5)) == 2**62
    assert {records.pairs([2, 0, 1], 50.0) for _ in range(1000)} == {0, 3, 5}
    assert 0 <= sets.set_olh({10, 2**47, 5}, 2, 2.0, 15, 64) < 15 * 64


def test_strings_and_zones_give_their_worked_examples() -> None:
    assert strings.symbol_of("weather", 64).to_bytes(6, "little").hex() == "6df060e27e18"
    assert strings.positions(7, strings.symbol_of("weather", 64), 1, 8) == [7]
    assert strings.positions(7, strings.symbol_of("weather", 64), 2, 128) == [86, 80]
    assert len(strings.bloom("weather", 64, 1.0, 128, 2, 64)) == 18
    assert strings.spell("banana", {*"abn", "an", "anan"}) == ["b", "anan", "a"]
    assert strings.spell("cabana", {*"abn", "an", "anan"}) is None
    tag = zones.Zones(156, 1.0, 2.0)
    assert (tag.points, len(tag.planes[0])) == (364, 121)
    assert tag.planes[5][:4] == [1, 6, 9, 12]
    assert 0 <= tag.answer(155) < 364


@pytest.mark.parametrize("payload", [5, b"\xa5\x00\xf8"])
def test_a_report_has_the_bytes_of_the_recipe(payload: int | bytes) -> None:
    message = messages.encode("places", 1, bytes(range(16)), 1_767_603_600_000, payload)
    assert message == Report("places", 1, bytes(range(16)), 1_767_603_600_000, payload).encode()


def test_a_client_follows_the_vectors() -> None:
    assert vectors.follow() > 1
