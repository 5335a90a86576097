"""What a device cannot report, or hide, is refused, and no error, nor one behind it, names it."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.devices.device import Device
from uldp.schemas.specs.collection import CollectionSpec

SECRET = "7777"


def of(name: str, domain: Any, **keys: Any) -> CollectionSpec:
    return build.spec(domain=domain, mechanism={"name": name, "epsilon": 1.0}, **keys)


NUMBER, STRINGS = {"number": {"low": -10, "high": 24}}, {"strings": {"longest": 8}}
TAGGED = of("urr", {"size": 9000}, sensitive=[2], tags=[{"name": "home"}, {"name": "others"}])
APP: dict[str, Any] = {"labels": ["mail", "maps", "clinic"], "sensitive": ["clinic"], "tags": [{"name": "home"}]}
RECORD = build.spec(
    domain={"record": {"app": APP, "hours": NUMBER}},
    mechanism={"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "urr"}, "hours": {"name": "duchi"}}},
)
DUCHI, BLOCK, TEXTS = of("duchi", NUMBER), of("block", NUMBER), of("bloom", STRINGS)
SETS = of("set-ss", {"set": {"of": {"size": 9}, "at_most": 3}})
PAIRS = of("set-ss", {"pairs": {"of": {"size": 6}, "at_most": 2, "low": -10, "high": 30}})
TEXT_SETS = of("set-olh", {"set": {"of": STRINGS, "at_most": 3}})
RANKING = of("pairs", {"ranking": {"of": ["a", "b", "c"]}})
SLICED = of("rr", {"size": 9}, by={"os": ["android", "ios"], "country": ["c1", "c2"]})
LEVELS = build.spec(
    mechanism={"name": "levels", "levels": {"strict": {"epsilon": 0.5}, "open": {"epsilon": 2.0}}, "of": {"name": "rr"}}
)
OUTSIDE, INFINITE = "^the value is outside of the domain 0 to 8999$", "^a value is not a finite number$"
EACH, BY = r"^a record needs a value for each of \['app', 'hours'\]$", "by needs a value for each of"


@pytest.mark.parametrize(
    ("spec", "value", "error", "text"),
    [
        # The bots are symbols of the mechanism, yet no values.
        *((TAGGED, value, ValueError, OUTSIDE) for value in (-7777, 17777, 9000, 9001)),
        *((TAGGED, value, TypeError, "^the value is a") for value in (7777.0, "7777")),
        *((each, value, ValueError, INFINITE) for each in (DUCHI, BLOCK) for value in (math.nan, math.inf, -math.inf)),
        (RECORD, {"app": 0, "hours": math.nan}, ValueError, INFINITE),
        *((DUCHI, value, TypeError, "not a number$") for value in ("7777 steps", "7777", None, b"7777", [7777])),
        *((RECORD, value, ValueError, EACH) for value in ({}, {"app": 1}, {"hours": 7777}, {"app": 1, "secret": 1})),
        (SETS, {3, 7777}, ValueError, "an item is outside of the domain 0 to 8"),
        (SETS, [3, 3], ValueError, "the value has an item twice"),
        (SETS, 7777, TypeError, "the value is a int, not a set, a list or a tuple of items"),
        (SETS, ["7777"], TypeError, "an item is a str, not an int: its index, 0 to 8"),
        (PAIRS, [1, 7777], TypeError, "the value is a list, not a mapping of keys to numbers"),
        (PAIRS, {1: "7777"}, TypeError, "the number of a key is a str, not a number"),
        (PAIRS, {7777: 3.0}, ValueError, "an item is outside of the domain 0 to 5"),
        *((PAIRS, {1: number}, ValueError, "a number is not finite") for number in (math.nan, math.inf)),
        (TEXTS, "7777" * 3, ValueError, "more than 8 bytes of UTF-8"),
        (TEXTS, "\ud8007777", ValueError, "not valid Unicode"),
        *((TEXTS, value, TypeError, "not a string") for value in (7777, b"7777")),
        (TEXT_SETS, "7777", TypeError, "the value is a str, not a set, a list or a tuple of strings"),
        (TEXT_SETS, [7777], TypeError, "an item is a int, not a string"),
        (TEXT_SETS, ["7777", "7777"], ValueError, "the value has an item twice"),
        (TEXT_SETS, ["7777" * 3], ValueError, "more than 8 bytes of UTF-8"),
        (TEXT_SETS, ["\ud8007777"], ValueError, "the value is not valid Unicode"),
        *((RANKING, value, ValueError, "rank") for value in ([0, 1], [0, 1, 1], [0, 1, 7777])),
        *((RANKING, value, TypeError, r"^the (value|ranking)") for value in ("a>b>7777", [0, 1, 7777.0])),
    ],
    ids=lambda value: repr(value) if isinstance(value, str | int | float | list | dict | set) else "",
)
def test_a_value_that_cannot_be_reported(spec: CollectionSpec, value: Any, error: type[Exception], text: str) -> None:
    refused(error, text, lambda: Device(spec, {}).report(value, build.START))


@pytest.mark.parametrize(
    ("spec", "hidden", "text"),
    [
        (TAGGED, {7: "7777"}, r"not in the spec, whose tags are \['home', 'others'\]"),
        (TAGGED, {17777: "home"}, "outside of the domain 0 to 8999"),
        (TAGGED, {-17777: "home"}, "outside of the domain 0 to 8999"),
        (
            RECORD,
            {"7777": {1: "home"}},
            r"^hidden names an attribute that is not in the spec, which has \['app', 'hours'",
        ),
        (RECORD, {"app": {7777: "home"}}, "^a hidden value is outside of the domain 0 to 2$"),
        (
            RECORD,
            {"app": {1: "7777"}},
            r"^a hidden value has a tag that is not in the spec, whose tags are \['home'\]$",
        ),
    ],
)
def test_a_value_that_cannot_be_hidden(spec: CollectionSpec, hidden: Any, text: str) -> None:
    refused(ValueError, text, lambda: Device(spec, hidden))


@pytest.mark.parametrize(
    ("spec", "by", "text"),
    [
        (SLICED, None, "by is a NoneType, not a mapping with"),
        (SLICED, {"os": "ios"}, BY),
        (SLICED, {"os": "ios", "country": "c1", "age": "3"}, BY),
        (SLICED, {"os": "io", "country": "c1"}, "by.os has no value 'io'"),
        (build.spec(), {"os": "ios"}, "no public attributes"),
    ],
)
def test_public_attributes_are_those_of_the_spec(spec: CollectionSpec, by: Any, text: str) -> None:
    refused((TypeError, ValueError), text, lambda: Device(spec, {}).report(1, build.START, by=by))


@pytest.mark.parametrize("level", [None, "lax"])
def test_a_level_is_one_of_the_spec(level: str | None) -> None:
    refused(ValueError, "a device needs one of the levels strict, open", lambda: Device(LEVELS, {}, level=level))
    if level is not None:
        refused(ValueError, "has no levels", lambda: Device(build.spec(), {}, level=level))


def refused(error: Any, text: str, ask: Callable[[], object]) -> None:
    with pytest.raises(error, match=text) as caught:
        ask()
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
