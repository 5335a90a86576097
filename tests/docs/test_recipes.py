"""The recipes in docs/client compute what the collector expects."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.conformance.vectors import read
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.metric.randomizer import MetricMechanism
from uldp.mechanisms.kernels.block_designs import difference_set
from uldp.mechanisms.kernels.designs import Design

ROOT = Path(__file__).parents[2]
HOURS = {"number": {"low": 0, "high": 24}}
N = 4000


@pytest.fixture(scope="module")
def recipes() -> dict[str, Any]:
    """The functions of the programs with recipes, by name."""
    names: dict[str, Any] = {}
    for page in sorted((ROOT / "docs" / "client").glob("*.md")):
        programs = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for program in programs:
            if "randbelow" in program:
                exec(program, names)
    return names


def test_hashes_and_noise_are_those_of_the_vectors(recipes: dict[str, Any]) -> None:
    for each in read("functions.json")["hash"]:
        assert recipes["bucket_of"](each["seed"], each["symbol"], each["buckets"]) == each["bucket"]
    for case in read("block.json")["cases"]:
        epsilon, known = case["spec"]["mechanism"]["epsilon"], case["probabilities"]
        if "grid" in known:  # without a permanent response
            noise = recipes["noise_below"](epsilon, known["grid"], known["width"])
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
    recipe: str, arguments: tuple[Any, ...], domain: Any, more: dict[str, Any], recipes: dict[str, Any]
) -> None:
    """Within 6 standard errors, which one run of 10^8 misses; the recipes draw from the system's randomness."""
    spec = build.spec(domain=domain, mechanism={"name": recipe, "epsilon": 1.0} | more)
    protocol = build_protocol(spec)
    sent = [recipes[recipe.replace("-", "_")](*arguments) for _ in range(N)]
    payloads = (
        np.array([list(each) for each in sent], np.uint8) if recipe in {"olh", "she"} else np.array(sent, np.uint32)
    )
    assert protocol.mechanism.possible(payloads).all()
    linear = protocol.decoder.linear(protocol.mechanism.statistic(payloads), N)
    truth = np.eye(domain["size"])[3] if "size" in domain else np.array([17.3])
    assert (np.abs(linear.values - truth) <= 6 * np.sqrt(linear.variance)).all()


@pytest.mark.parametrize(("g", "m", "w"), [(2, 3, 3), (3, 4, 13), (4, 3, 5), (5, 3, 6), (8, 3, 9)])
def test_a_recipe_finds_the_same_difference_sets(g: int, m: int, w: int, recipes: dict[str, Any]) -> None:
    design = Design((g**m - 1) // (g - 1), w, (w - 1) // g, field=g, dimension=m)
    assert recipes["singer"](g, m) == difference_set(design).tolist()


@pytest.mark.parametrize("name", ["uhr", "ubd"])
@pytest.mark.parametrize("value", [1, 25])
def test_the_collector_finds_the_value_of_a_block(name: str, value: int, recipes: dict[str, Any]) -> None:
    v = 22
    mechanism = {"name": name, "epsilon": 2.0}
    protocol = build_protocol(build.spec(domain={"size": 30}, sensitive=[*range(v)], mechanism=mechanism))
    arguments = (v, 2.0) if name == "uhr" else (recipes["singer"](5, 3), 31, 2.0)
    i, own = (value, 0) if value < v else (None, value - v)
    payloads = np.array([recipes[name](i, own, *arguments) for _ in range(N)], np.uint32)
    assert protocol.mechanism.possible(payloads).all()
    linear = protocol.decoder.linear(protocol.mechanism.statistic(payloads), N)
    assert (np.abs(linear.values - np.eye(30)[value]) <= 6 * np.sqrt(linear.variance) + 1e-9).all()
