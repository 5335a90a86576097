"""Nested responses: the geometry, and the channel of the outer symbols."""

import math

import numpy as np
import pytest

from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.projective_response import ProjectiveResponse
from uldp.schemas.arrays import Floats

SENSITIVE = np.array([True, False, True, False, False])
#: By zones and budget: g, P and s by the rule of the docstring.
GEOMETRIES = {
    (2, 1.0): (2, 3, 1),
    (4, 1.0): (3, 4, 1),
    (5, 1.0): (3, 13, 4),
    (8, 2.0): (7, 8, 1),
    (156, 1.0): (3, 364, 121),
    (156, 2.0): (7, 400, 57),
    (30, 0.1): (2, 31, 15),
}


@pytest.mark.parametrize(("zones", "epsilon"), GEOMETRIES)
def test_any_two_hyperplanes_share_as_many_points(zones: int, epsilon: float) -> None:
    response = ProjectiveResponse(zones, epsilon)
    g, points, on_plane = GEOMETRIES[zones, epsilon]
    assert (response.points, response.hyperplanes.shape) == (points, (zones, on_plane))
    planes = [set(plane.tolist()) for plane in response.hyperplanes]
    assert {len(one & other) for one in planes for other in planes if one is not other} == {(on_plane - 1) // g}


@pytest.mark.parametrize(("zones", "epsilon"), GEOMETRIES)
def test_two_zones_differ_by_the_budget_at_each_point(zones: int, epsilon: float) -> None:
    response = ProjectiveResponse(zones, epsilon)
    law = np.array([response.law(one) for one in np.eye(zones)])
    np.testing.assert_allclose(law.sum(axis=1), 1, rtol=1e-12)
    assert law.max() / law.min() == pytest.approx(math.exp(epsilon), rel=1e-12)
    for zone in (0, zones - 1):
        own = response.hyperplanes[zone]
        inside = law[:, own].sum(axis=1)
        assert inside[zone] == pytest.approx(response.inside)
        np.testing.assert_allclose(np.delete(inside, zone), response.across)


def nested(epsilon: float, zone_epsilon: float) -> NestedResponse:
    """Over five values: a nested bot with 7 zones, a bot without, and a nested bot with 4."""
    nests = [ProjectiveResponse(7, zone_epsilon, epsilon), None, ProjectiveResponse(4, zone_epsilon, epsilon)]
    return NestedResponse(SENSITIVE, epsilon, nests)


def probabilities(mechanism: NestedResponse) -> Floats:
    """The probability of each payload from each input, shape (inputs, payloads)."""
    return np.array([mechanism.law(one) for one in np.eye(mechanism.size)])


def test_the_outer_symbols_are_a_channel() -> None:
    mechanism = nested(2.0, 1.0)
    law = probabilities(mechanism)
    folded = np.add.reduceat(law, mechanism.first_payloads[:-1], axis=1)
    outer = np.repeat(np.arange(8), [1, 1, 1, 1, 1, 7, 1, 4])
    for row, symbol in zip(folded, outer, strict=True):
        wanted = np.where(np.arange(8) == symbol, mechanism.channel.p, mechanism.channel.q)
        np.testing.assert_allclose(row, wanted, rtol=1e-12, atol=1e-15)
    cells = np.arange(mechanism.statistic_size)
    assert mechanism.fold(cells).sum() == cells.sum()
