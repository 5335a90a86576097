"""Devices that hold a number or a record: what they send, and what never leaves them."""

import math
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec

NOON = 1_767_268_800_000
HOURS: dict[str, Any] = {"number": {"low": -10, "high": 24}}
APP: dict[str, Any] = {"labels": ["mail", "maps", "clinic"], "sensitive": ["clinic"], "tags": [{"name": "home"}]}
#: At this epsilon a report of a sensitive value is noise with a probability below 1e-8.
CERTAIN = 20.0


def number(name: str, epsilon: float = CERTAIN, **parameters: Any) -> CollectionSpec:
    return build.spec(domain=HOURS, mechanism={"name": name, "epsilon": epsilon} | parameters)


def record(epsilon: float = CERTAIN, app: str = "urr", share: float = 0.5, domain: Any = None) -> CollectionSpec:
    of = {"app": {"name": app, "share": share}, "hours": {"name": "duchi", "share": 1 - share}}
    mechanism = {"name": "sample-one", "epsilon": epsilon, "of": of}
    return build.spec(domain={"record": {"app": domain or APP, "hours": HOURS}}, mechanism=mechanism)


def payload(message: bytes) -> Any:
    return report_store().decode(message)[1]["payload"]


DUCHI, BLOCK = number("duchi"), number("block", bins=4)


@pytest.mark.parametrize("far", [1, 1e9, 1e308])
@pytest.mark.parametrize(("spec", "least", "most"), [(DUCHI, 0, 1), (BLOCK, 0, 4)], ids=["duchi", "block"])
def test_a_number_outside_of_the_range_becomes_the_nearest_end(
    spec: CollectionSpec, least: int, most: int, far: float
) -> None:
    device = Device(spec, {})
    for value, end in ((-10, least), (-10 - far, least), (24, most), (24 + far, most)):
        assert payload(device.report(value, NOON)) == end


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("spec", [DUCHI, BLOCK, record()], ids=["duchi", "block", "record"])
def test_what_is_no_finite_number_is_refused_without_naming_it(spec: CollectionSpec, value: float) -> None:
    held: Any = value if "" in spec.variables else {"app": 0, "hours": value}
    with pytest.raises(ValueError, match=r"^a value is not a finite number$") as caught:
        Device(spec, {}).report(held, NOON)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("value", ["7777 steps", "7777", None, b"7777", [7777]])
def test_what_is_no_number_is_refused_without_naming_it(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^the value is a \w+, not a number$") as caught:
        Device(DUCHI, {}).report(value, NOON)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize("value", [{}, {"app": 1}, {"hours": 7777}, {"app": 1, "hours": 7777, "secret": 1}])
def test_a_record_needs_each_attribute_and_no_other(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^a record needs a value for each of \['app', 'hours'\]$"):
        Device(record(), {}).report(value, NOON)


def test_an_attribute_that_is_not_drawn_is_checked_too() -> None:
    # Otherwise an error, or its absence, would say which attribute the device has drawn.
    device = Device(record(share=1e-6), {})
    for _ in range(20):
        with pytest.raises(ValueError, match=r"^the value is outside of the domain 0 to 2$"):
            device.report({"app": 7777, "hours": 5}, NOON)


def test_hidden_values_of_a_record_become_the_bot_of_their_tag_in_their_attribute() -> None:
    # Symbols of the app: mail, maps, clinic and the bot of home; then the zeros and ones about the hours.
    assert build_protocol(record()).mechanism.form.symbols == 4 + 2
    device = Device(record(), {"app": {1: "home", 2: "home"}})
    for app, symbol in ((0, 0), (1, 3), (2, 3)):
        sent = {payload(device.report({"app": app, "hours": 24}, NOON)) for _ in range(60)}
        assert sent == {symbol, 5}  # one of the two attributes alone would have a probability of 2^-59


@pytest.mark.parametrize(
    ("hidden", "match"),
    [
        ({"secret": {1: "home"}}, r"^hidden names an attribute that is not in the spec, which has \['app', 'hours'\]$"),
        ({"app": {7777: "home"}}, r"^a hidden value is outside of the domain 0 to 2$"),
        ({"app": {1: "secret"}}, r"^a hidden value has a tag that is not in the spec, whose tags are \['home'\]$"),
    ],
)
def test_hidden_values_must_fit_their_attribute_and_are_not_named(hidden: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Device(record(), hidden)
