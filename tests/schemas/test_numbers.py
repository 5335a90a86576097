"""A collection of a number."""

from typing import Any

import pytest

from tests import build
from uldp.schemas.specs.kinds import Number
from uldp.schemas.specs.mechanism_family import names_where
from uldp.schemas.specs.specfile import SpecError

DUCHI: dict[str, Any] = {"domain": {"number": {"low": -1, "high": 24}}, "mechanism": {"name": "duchi", "epsilon": 1.0}}


def test_a_number_has_a_range_and_no_values() -> None:
    spec = build.spec(**DUCHI)
    number = spec.variables[""].of_kind(Number)
    assert number is not None
    assert (number.low, number.high) == (-1.0, 24.0)
    assert (spec.size, spec.labels, spec.sensitive_mask.shape, spec.background.shape) == (0, [], (0,), (0, 0))


@pytest.mark.parametrize(("text", "number"), [("-1", -1.0), ("24", 24.0), ("7.25", 7.25), ("1e1", 10.0)])
def test_a_number_is_read_from_a_table(text: str, number: float) -> None:
    assert build.spec(**DUCHI).variables[""].read(text) == number


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("24.5", "'24.5' is outside of the range -1 to 24"),
        ("-1.5", "'-1.5' is outside of the range -1 to 24"),
        ("nan", "'nan' is outside of the range -1 to 24"),
        ("noon", "'noon' is not a number"),
        ("", "'' is not a number"),
    ],
)
def test_text_that_is_no_number_of_the_range_is_an_error(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=f"^{says}$"):
        build.spec(**DUCHI).variables[""].read(text)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"domain": {"number": 3}}, "domain.number: must be a mapping, as number: {low: 0, high: 10} (got 3)"),
        ({"domain": {"number": {"low": 1}}}, "domain.number.high: missing; add it"),
        ({"domain": {"number": {"low": 3, "high": 3}}}, "domain.number: low must be less than high, got 3 and 3"),
        (
            {"domain": {"number": {"low": 0, "high": float("inf")}}},
            "domain.number.high: must be a finite number (got inf)",
        ),
        (
            {"domain": {"number": {"low": float("nan"), "high": 1}}},
            "domain.number.low: must be a finite number (got nan)",
        ),
        (
            {"domain": {"number": {"low": -1e308, "high": 1e308}}},
            "domain.number: the range from -1e+308 to 1e+308 is too wide; use another unit",
        ),
        (
            {"mechanism": {"name": "urr", "epsilon": 1}},
            (
                "mechanism: urr is for several values, and the domain is a number; choose one of "
                + names_where(lambda family: family.takes("number"))
            ),
        ),
        (
            {"domain": {"size": 2}},
            (
                "mechanism: duchi is for a number, and the domain is several values; choose one of "
                + names_where(lambda family: family.takes("values"))
            ),
        ),
        ({"sensitive": [1]}, "duchi protects every number alike; remove sensitive"),
        ({"estimator": "mle"}, "estimator mle does not fit duchi; choose from auto, empirical"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_one_line_with_the_key_and_the_remedy(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**DUCHI | keys)
    assert str(caught.value) == f"spec: {text}"
