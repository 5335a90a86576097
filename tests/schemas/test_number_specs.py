"""Collections of a number or of several: range, short form of a record of numbers, and the limits of block."""

from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.block.spec import MAX_EMS_BINS
from uldp.schemas.specs.budget import MIN_EPSILON
from uldp.schemas.specs.collection import CollectionSpec
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
        ({"domain": {"number": {"low": 3, "high": 3}}}, "domain.number: low must be less than high, got 3 and 3"),
        (
            {"domain": {"number": {"low": 0, "high": float("inf")}}},
            "domain.number.high: must be a finite number (got inf)",
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


NUMBERS = {"names": ["a", "b"], "low": -1, "high": 1}
SHORT: dict[str, Any] = {"domain": {"numbers": NUMBERS}, "mechanism": {"name": "block", "epsilon": 2.0, "bins": 64}}
_NUMBER, _PART = {"number": {"low": -1, "high": 1}}, {"name": "block", "bins": 64}
LONG: dict[str, Any] = {
    "domain": {"record": {"a": _NUMBER, "b": _NUMBER}},
    "mechanism": {"name": "sample-one", "epsilon": 2.0, "of": {"a": _PART, "b": _PART}},
}


@pytest.mark.parametrize("budget", [{}, {"lasting_epsilon": 4.0}])
def test_it_is_the_record_written_out(budget: dict[str, Any]) -> None:
    short, long = (build.spec(**keys | {"mechanism": keys["mechanism"] | budget}) for keys in (SHORT, LONG))
    assert short.model_dump() == long.model_dump()
    assert short.device_digest == long.device_digest


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        (NUMBERS | {"names": []}, "domain.numbers.names"),
        (NUMBERS | {"names": ["a", "a"]}, "label 'a' occurs twice"),
        (NUMBERS | {"names": ["A"]}, "domain.numbers.names"),
        (NUMBERS | {"low": 1}, "domain.numbers"),
        ({"names": ["a"], "low": 0}, "domain.numbers.high: missing"),
    ],
)
def test_mistakes_in_numbers_are_named(numbers: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**SHORT | {"domain": {"numbers": numbers}})
    assert text in str(caught.value)


def test_it_is_no_record_beside_another() -> None:
    with pytest.raises(SpecError, match="given: record, numbers"):
        build.spec(**SHORT | {"domain": {"numbers": NUMBERS, "record": LONG["domain"]["record"]}})


NUMBER = {"number": {"low": 0, "high": 24}}


def alone(epsilon: float = 1.0, bins: int = 1024, **keys: Any) -> CollectionSpec:
    return build.spec(domain=NUMBER, mechanism={"name": "block", "epsilon": epsilon, "bins": bins}, **keys)


def of_a_record(epsilon: float = 1.0, bins: int = 1024, **keys: Any) -> CollectionSpec:
    of = {"hours": {"name": "block", "bins": bins}, "place": {"name": "rr"}}
    domain = {"record": {"hours": NUMBER, "place": {"size": 3}}}
    return build.spec(domain=domain, mechanism={"name": "sample-one", "epsilon": epsilon, "of": of}, **keys)


@pytest.mark.parametrize(("spec", "key"), [(alone, "mechanism.bins"), (of_a_record, "mechanism.of.hours.bins")])
@pytest.mark.parametrize("estimator", ["ems", ["empirical", "ems"]])
def test_ems_with_too_many_bins_is_refused_with_a_remedy(spec: Any, key: str, estimator: Any) -> None:
    with pytest.raises(SpecError) as caught:
        spec(bins=MAX_EMS_BINS + 1, estimator=estimator)
    assert str(caught.value) == (
        f"spec: {key}: estimator ems takes at most 1,024 bins, got 1,025; write bins: 1024, or remove estimator ems"
    )


@pytest.mark.parametrize("spec", [alone, of_a_record])
def test_each_estimator_that_a_spec_may_name_is_one_of_its_decoder(spec: Any) -> None:
    assert "ems" in build_protocol(spec(bins=MAX_EMS_BINS, estimator="ems")).decoder.estimators
    assert build_protocol(spec(bins=MAX_EMS_BINS + 1)).decoder.estimators[0] == "auto"


@pytest.mark.parametrize("spec", [alone, of_a_record])
def test_the_least_epsilon_is_that_of_the_mechanism(spec: Any) -> None:
    assert build_protocol(spec(epsilon=MIN_EPSILON)).mechanism.guarantee.epsilon == MIN_EPSILON
    with pytest.raises(SpecError) as caught:
        spec(epsilon=9e-7)
    text = "spec: mechanism.epsilon: must be 1e-06 or more: with less, a report says almost nothing (got 9e-07)"
    assert str(caught.value) == text
