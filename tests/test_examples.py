"""The examples are documentation: they must load, and hold the figures that their READMEs give."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from uldp.schemas.specs.collection import CollectionSpec

EXAMPLES = Path(__file__).parents[1] / "examples"


def load(name: str) -> CollectionSpec:
    return CollectionSpec.load(EXAMPLES / name / "spec.yaml")


def truth(name: str) -> Iterator[tuple[str, str, float]]:
    with (EXAMPLES / name / "truth.csv").open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        assert next(rows) == ["value", "tag", "weight"]
        for value, tag, weight in rows:
            yield value, tag, float(weight)


@pytest.mark.parametrize(
    ("name", "mechanism", "size", "sensitive"), [("manhattan", "urr", 625, 15), ("census", "urap", 400, 76)]
)
def test_the_spec_loads_with_the_papers_figures(name: str, mechanism: str, size: int, sensitive: int) -> None:
    spec = load(name)
    assert spec.mechanism.name == mechanism
    assert spec.size == size
    assert spec.sensitive_mask.sum() == sensitive
    assert spec.mechanism.epsilon == math.log(size)


def test_manhattan_has_28028_check_ins_in_432_cells() -> None:
    rows = list(truth("manhattan"))
    assert sum(weight for _, _, weight in rows) == 28_028
    assert len({value for value, _, _ in rows}) == 432


@pytest.mark.parametrize(
    ("axis", "persons"),
    [
        (0, [32169, 441248, 242511, 370955, 404535, 312825, 331258, 322784]),
        (1, [1237403, 564755, 376031, 232422, 47674]),
        (2, [1095567, 145497, 153745, 41044, 1022432]),
        (3, [1191601, 1266684]),
    ],
    ids=["age", "income", "marital", "sex"],
)
def test_census_has_the_exact_counts_of_each_attribute(axis: int, persons: list[int]) -> None:
    spec = load("census")
    codes = np.unravel_index([spec.index(value) for value, _, _ in truth("census")], (8, 5, 5, 2))
    weights = [weight for _, _, weight in truth("census")]
    # Weights have four decimals, and there are at most 400 of them.
    np.testing.assert_allclose(np.bincount(codes[axis], weights), persons, rtol=0, atol=400 * 5e-5)


def test_census_protects_divorce_and_unemployment_at_the_ages_that_the_paper_gives() -> None:
    spec = load("census")
    sensitive = np.zeros((8, 5, 5, 2), dtype=np.bool_)
    sensitive[2:, :, 2] = True
    sensitive[4:6, 0] = True
    np.testing.assert_array_equal(spec.sensitive_mask, sensitive.ravel())
    assert spec.labels[0] == "age0/income0/marital0/sex0"
    assert spec.labels[np.ravel_multi_index((4, 1, 2, 0), sensitive.shape)] == "age4/income1/marital2/sex0"


@pytest.mark.parametrize(("name", "budget"), [("nested", 1.0), ("zones", None)])
def test_manhattan_has_a_spec_for_each_way_to_learn_what_is_behind_tags(name: str, budget: float | None) -> None:
    spec, plain = CollectionSpec.load(EXAMPLES / "manhattan" / f"{name}.yaml"), load("manhattan")
    assert spec.background.tolist() == plain.background.tolist()
    assert (spec.sensitive, spec.mechanism, spec.window) == (plain.sensitive, plain.mechanism, plain.window)
    for tag, zones, background, count in zip(
        spec.tags, spec.variables[""].zones, spec.background, (115, 156), strict=True
    ):
        assert zones is not None
        assert (tag.zone_epsilon, len(zones.labels)) == (budget, count)
        # All but rest have mass, and none has more than its part unless it is one cell.
        masses, cells = np.bincount(zones.of_value, background), np.bincount(zones.of_value)
        assert masses[-1] == 0 < masses[:-1].min()
        assert masses[cells > 1].max() < 2 / 156
