"""Devices that hold a number or a record: what they send, and what never leaves them."""

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
