"""Zones from a background alone: equal masses, and as many as the reports bear."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.zones.zone_choice import best_zones, equal_zones, expected_l1
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import names_where
from uldp.schemas.specs.specfile import read_spec
from uldp.schemas.specs.variable import Variable

MANHATTAN = Path(__file__).parents[2] / "examples" / "manhattan"
VARIABLE = CollectionSpec.load(MANHATTAN / "spec.yaml").variables[""]


def distribution(weights: list[int]) -> Floats:
    return np.array(weights) / sum(weights)


@pytest.mark.parametrize(
    ("weights", "count", "zones"),
    [
        ([1, 1, 1, 1], 3, [0, 0, 1, 1]),
        ([1, 5, 1, 1], 3, [1, 0, 1, 1]),
        ([0, 4, 0, 2, 2], 3, [2, 0, 2, 1, 1]),
        ([0, 3, 3, 2], 10, [3, 0, 1, 2]),
    ],
)
def test_zones_have_equal_mass_and_the_last_has_none(weights: list[int], count: int, zones: list[int]) -> None:
    assert equal_zones(distribution(weights), count).of_value.tolist() == zones


@given(st.lists(st.integers(0, 20), min_size=2, max_size=60).filter(any), st.integers(2, 40))
def test_a_zone_has_no_more_than_its_part_but_for_one_value(weights: list[int], count: int) -> None:
    background = distribution(weights)
    zones = equal_zones(background, count)
    masses = np.bincount(zones.of_value, background)
    assert len(zones.labels) == len(masses) <= count
    assert zones.of_value.min() == 0
    for zone, mass in enumerate(masses.tolist()):
        own = background[zones.of_value == zone]
        assert mass - own.min() < 1 / max(count - 1, 1) + 1e-9
    order = np.argsort(-background, kind="stable")
    assert (np.diff(zones.of_value[order]) >= 0).all()


def at(epsilon: float) -> Variable:
    return replace(VARIABLE, mechanism=VARIABLE.mechanism.model_copy(update={"epsilon": epsilon}))


def test_more_reports_bear_more_zones() -> None:
    counts = [len(best_zones(VARIABLE, 0, users, 1.0).zones.labels) for users in (10_000, 179_527, 4_300_000)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == 115


def test_zones_pay_off_at_a_large_epsilon_alone() -> None:
    for epsilon, pays_off in ((6.4, True), (2.0, False)):
        choice = best_zones(at(epsilon), 0, 179_527, None)
        assert (choice.after < 0.9 * choice.before) == pays_off
    # An answer with a budget of its own pays off at a smaller epsilon too, if there are enough of them.
    choice = best_zones(at(2.0), 0, 4_300_000, 1.0)
    assert choice.after < 0.9 * choice.before


def by(name: str, epsilon: float, **parameters: float) -> Variable:
    keys = {"mechanism": {"name": name, "epsilon": epsilon, **parameters}, "estimator": "auto"}
    written = read_spec(MANHATTAN / "spec.yaml")
    assert isinstance(written, dict)
    return CollectionSpec.parse(written | keys, base=MANHATTAN).variables[""]


@pytest.mark.parametrize("epsilon", [0.5, None])
@pytest.mark.parametrize("weights", [[1] * 8, [8, 1], [1, 0, 0]])
def test_a_choice_has_two_zones_or_more_also_if_all_values_have_mass(weights: list[int], epsilon: float | None) -> None:
    spec = build.spec(domain={"size": len(weights)}, sensitive=[0], tags=[{"name": "home"}])
    background = [distribution(weights)]
    variable = replace(spec.variables[""], background=np.array(background), strength=np.array([10.0]))
    assert len(best_zones(variable, 0, 1000, epsilon).zones.labels) >= 2


@pytest.mark.parametrize("name", names_where(lambda family: family.takes_tags).split(", "))
@pytest.mark.parametrize("zoned", [False, True])
def test_the_expected_error_is_that_of_draws(name: str, zoned: bool, tmp_path: Path) -> None:
    users, rng = 50_000, np.random.default_rng(5)
    (tmp_path / "home.csv").write_text("8,1\n9,1\n10,1\n11,1\n", encoding="utf-8")
    (tmp_path / "zones.csv").write_text("8,a\n9,a\n10,b\n11,b\n", encoding="utf-8")
    tag = {"name": "home", "background": "home.csv", "strength": 1e9} | ({"zones": "zones.csv"} if zoned else {})
    keys = {"domain": {"size": 12}, "sensitive": [0, 1, 2], "mechanism": {"name": name, "epsilon": 3.0}, "tags": [tag]}
    spec = CollectionSpec.parse(build.MINIMAL | keys, base=tmp_path)
    protocol, truth = build_protocol(spec), np.full(12, 0.9 / 12) + np.where(np.arange(12) < 8, 0.0, 0.1 / 4)
    errors = []
    for _ in range(60):
        values, hides = rng.integers(0, 12, users), rng.random(users) < 0.1
        held = Held(np.where(hides, rng.integers(8, 12, users), values), np.where(hides, 0, -1))
        cells = protocol.mechanism.statistic(protocol.perturb([held], rng))
        shares = protocol.decoder.tables(cells, users, "empirical")[0].values
        errors.append(float(np.abs(shares - truth).sum()))
    # The truth of the windows themselves varies, which the expected error leaves out: at most by sqrt(r (1-r) / users).
    assert np.mean(errors) == pytest.approx(expected_l1(spec.variables[""], users), rel=0.1)
