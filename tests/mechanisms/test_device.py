"""Devices: what leaves them, and what never does."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec

NOON = 1_767_268_800_000
HOME = 7777
SIZE = 9000


def make_spec(mechanism: str = "urr", epsilon: float = 1.0, size: int = SIZE, **changes: Any) -> CollectionSpec:
    base = {
        "collection": "check-ins",
        "version": 3,
        "domain": {"size": size},
        "sensitive": [2],
        "mechanism": {"name": mechanism, "epsilon": epsilon},
        "tags": [{"name": "home"}, {"name": "others"}],
    }
    return build.spec(**base | changes)


class Quiet:
    """Randomness that draws the most it can: no noise, so the report shows what went into the mechanism."""

    def random(self, size: int | tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.full(size, 1 - 2**-53)

    def integers(self, low: int, high: int, size: int | tuple[int, ...]) -> npt.NDArray[np.int64]:
        return np.full(size, high - 1)


def decode(message: bytes) -> dict[str, Any]:
    name, record = report_store().decode(message)
    assert name == "uldp.Report"
    return record


@pytest.mark.parametrize(("value", "symbol"), [(5, 5), (2, SIZE), (HOME, SIZE + 1), (8, SIZE + 1), (0, 0)])
def test_hidden_values_become_the_bot_of_their_tag(value: int, symbol: int) -> None:
    # Equation (20); the user may hide a value that is sensitive to all (2) behind a tag of her own.
    device = Device(make_spec(), {HOME: "others", 8: "others", 2: "home"}, Quiet())
    assert decode(device.report(value, NOON))["payload"] == symbol


def test_by_default_the_systems_randomness_obfuscates() -> None:
    # 100 reports of a sensitive value at epsilon 0.1 are all true with probability below 2^-150.
    device = Device(make_spec(epsilon=0.1), {})
    assert {decode(device.report(2, NOON))["payload"] for _ in range(100)} == {2, SIZE, SIZE + 1}


def test_each_report_has_an_id_of_its_own() -> None:
    # Also where the randomness of the mechanism repeats.
    device = Device(make_spec(), {}, Quiet())
    assert len({decode(device.report(5, NOON))["report_id"] for _ in range(100)}) == 100


def test_repr_shows_the_collection_and_nothing_of_the_user() -> None:
    device = Device(make_spec(), {HOME: "home"})
    device.report(HOME, NOON)
    assert repr(device) == f"{device}" == "Device(collection='check-ins', version=3)"


def test_later_changes_of_the_mapping_change_nothing() -> None:
    hidden = {HOME: "home"}
    device = Device(make_spec(), hidden, Quiet())
    hidden.clear()
    assert decode(device.report(HOME, NOON))["payload"] == SIZE


def record(share: float = 0.5) -> CollectionSpec:
    """At this epsilon a report of a sensitive value is noise with a probability below 1e-8."""
    app = {"labels": ["mail", "maps", "clinic"], "sensitive": ["clinic"], "tags": [{"name": "home"}]}
    of = {"app": {"name": "urr", "share": share}, "hours": {"name": "duchi", "share": 1 - share}}
    domain = {"record": {"app": app, "hours": {"number": {"low": -10, "high": 24}}}}
    return build.spec(domain=domain, mechanism={"name": "sample-one", "epsilon": 20.0, "of": of})


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
        sent = {decode(device.report({"app": app, "hours": 24}, NOON))["payload"] for _ in range(60)}
        assert sent == {symbol, 5}  # one of the two attributes alone would have a probability of 2^-59
