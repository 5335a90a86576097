"""Devices: what leaves them, and what never does."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests import build
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
