"""``domain.numbers``: a short form of a record of numbers."""

from typing import Any

import pytest

from tests import build
from uldp.schemas.specs.specfile import SpecError

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


def test_the_mechanism_may_be_that_of_the_record() -> None:
    one, other = build.spec(**SHORT | {"mechanism": LONG["mechanism"]}), build.spec(**LONG)
    assert one.model_dump() == other.model_dump()


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
def test_mistakes_are_named(numbers: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**SHORT | {"domain": {"numbers": numbers}})
    assert text in str(caught.value)


def test_it_is_no_record_beside_another() -> None:
    with pytest.raises(SpecError, match="given: record, numbers"):
        build.spec(**SHORT | {"domain": {"numbers": NUMBERS, "record": LONG["domain"]["record"]}})
