"""Devices that report again: what they keep, what they send, and when they refuse."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import Ledger, LedgerContent, MemoryLedger
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec

NOON = 1_767_268_800_000
SIZE = 9000
HOME, GYM = 7777, 7778


def make_spec(
    mechanism: str = "urr", epsilon: float = 1.0, lasting: float | None = 1.0, **changes: Any
) -> CollectionSpec:
    """Unless given, one report spends the lasting budget, so that it shows the permanent response."""
    base = {
        "domain": {"size": SIZE},
        "sensitive": "all",
        "mechanism": {"name": mechanism, "epsilon": epsilon, "lasting_epsilon": lasting},
    }
    return build.spec(**base | changes)


def hiding() -> CollectionSpec:
    return make_spec(sensitive=list(range(1, SIZE)), tags=[{"name": "home"}])


def payload(message: bytes) -> Any:
    return report_store().decode(message)[1]["payload"]


def report(spec: CollectionSpec, ledger: Ledger, value: int, hours: int, hidden: Any = None) -> Any:
    """The payload of a device that has just started."""
    return payload(Device(spec, hidden or {}, ledger=ledger).report(value, NOON + hours * build.HOUR))


def test_each_value_has_a_response_of_its_own_to_which_the_device_returns() -> None:
    ledger, spec = MemoryLedger(), make_spec()
    first = [report(spec, ledger, value, hours) for hours, value in enumerate(range(8))]
    again = [report(spec, ledger, value, 8 + hours) for hours, value in enumerate(range(8))]
    assert again == first
    assert len(set(first)) > 1


def test_values_behind_one_tag_share_a_response() -> None:
    ledger, spec = MemoryLedger(), hiding()
    hidden = {HOME: "home", GYM: "home"}
    assert len({report(spec, ledger, (HOME, GYM)[hours % 2], hours, hidden) for hours in range(8)}) == 1


def test_a_window_holds_one_report_of_a_device() -> None:
    ledger, spec = MemoryLedger(), make_spec()
    report(spec, ledger, 5, 1)
    for time in (NOON + build.HOUR, NOON + 2 * build.HOUR - 1, NOON):
        with pytest.raises(ValueError, match="has reported to c in this window, or in a later one") as caught:
            Device(spec, {}, ledger=ledger).report(HOME, time)
        assert "7777" not in str(caught.value)
    report(spec, ledger, 5, 2)


def test_sliding_windows_do_not_share_two_reports() -> None:
    ledger, spec = MemoryLedger(), make_spec(window={"size": "3h", "period": "1h"})
    # Noon is the beginning of a window of three hours. The last window that holds one o'clock ends at four.
    report(spec, ledger, 5, 1)
    for time in (NOON + 2 * build.HOUR, NOON + 4 * build.HOUR - 1):
        with pytest.raises(ValueError, match="in this window"):
            Device(spec, {}, ledger=ledger).report(5, time)
    report(spec, ledger, 5, 4)


def test_a_report_that_cannot_be_remembered_is_not_made() -> None:
    class Full(MemoryLedger):
        @contextmanager
        def change(self) -> Iterator[LedgerContent]:
            with super().change() as content:
                yield content
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        Device(make_spec(), {}, ledger=Full()).report(5, NOON)


def test_versions_with_one_channel_share_the_response() -> None:
    ledger = MemoryLedger()
    first = report(make_spec(), ledger, 5, 0)
    assert {report(make_spec(version=2, limits={"min_reports": 9}), ledger, 5, hours) for hours in range(1, 8)} == {
        first
    }
    others = {report(make_spec(collection=f"c{number}"), ledger, 5, 0) for number in range(8)}
    assert len(others) > 1
    assert len({report(make_spec(domain={"size": SIZE + number}), ledger, 5, 0) for number in range(1, 9)}) > 1


def test_keys_name_no_value_and_a_value_leaves_one_response() -> None:
    ledger, sizes = MemoryLedger(), []
    for hours, value in enumerate([HOME, HOME, 3]):
        report(make_spec(), ledger, value, hours)
        with ledger.change() as content:
            sizes.append((len(content.kept), len(content.spent)))
            assert not any("7777" in key for key in content.kept)
    # Each report writes the time at which it may be repeated. A new value adds its response, and what that spends.
    assert sizes == [(2, 1), (2, 1), (3, 2)]


def test_memory_needs_a_ledger() -> None:
    with pytest.raises(ValueError, match="c has lasting_epsilon, so its devices need a ledger, such as FileLedger"):
        Device(make_spec(), {})
