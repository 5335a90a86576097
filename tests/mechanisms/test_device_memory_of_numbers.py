"""Devices that report numbers, sets, hashes and records again: what they keep beside their responses."""

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger, MemoryLedger
from uldp.schemas.framing import report_store

NOON = 1_767_268_800_000
NUMBER: dict[str, Any] = {"number": {"low": 0.0, "high": 8.0}}
VALUES: dict[str, Any] = {"size": 100}
SETS: dict[str, Any] = {"set": {"of": VALUES, "at_most": 2}}
PAIRS: dict[str, Any] = {"pairs": {"of": VALUES, "at_most": 2, "low": 0.0, "high": 8.0}}
RECORD: dict[str, Any] = {"record": {"app": VALUES, "hours": NUMBER, "place": VALUES}}
OF = {"app": {"name": "urr"}, "hours": {"name": "block", "bins": 8}, "place": {"name": "olh"}}

#: One report spends the lasting budget, so that it shows the permanent response.
SHOWN = {"epsilon": 1.0, "lasting_epsilon": 1.0}
SPECS: dict[str, tuple[dict[str, Any], Any]] = {
    "rr": ({"domain": VALUES, "mechanism": {"name": "rr"} | SHOWN}, 5),
    "oue": ({"domain": VALUES, "mechanism": {"name": "oue"} | SHOWN}, 5),
    "ss": ({"domain": VALUES, "mechanism": {"name": "ss"} | SHOWN}, 5),
    "olh": ({"domain": VALUES, "mechanism": {"name": "olh"} | SHOWN}, 5),
    "set-ss": ({"domain": SETS, "mechanism": {"name": "set-ss"} | SHOWN}, {1, 5, 7}),
    "set-olh": ({"domain": SETS, "mechanism": {"name": "set-olh"} | SHOWN}, {1, 5, 7}),
    "pairs": ({"domain": PAIRS, "mechanism": {"name": "set-ss"} | SHOWN}, {1: 3.3, 5: 0.1, 7: 4.0}),
    "duchi": ({"domain": NUMBER, "mechanism": {"name": "duchi"} | SHOWN}, 3.3),
    "block": ({"domain": NUMBER, "mechanism": {"name": "block", "bins": 8} | SHOWN}, 3.3),
    "record": (
        {"domain": RECORD, "mechanism": {"name": "sample-one", "of": OF} | SHOWN},
        {"app": 3, "hours": 3.3, "place": 5},
    ),
}


def payload(message: bytes) -> Any:
    return report_store().decode(message)[1]["payload"]


def responses(ledger: Any) -> int:
    """The number of permanent responses: a ledger also has what the encoding drew, and when the device reported."""
    with ledger.change() as content:
        return len(content.kept) - 2


@pytest.mark.parametrize("name", SPECS)
def test_a_restarted_device_keeps_its_response(name: str, tmp_path: Path) -> None:
    keys, value = SPECS[name]
    spec, path = build.spec(**keys), tmp_path / "ledger.json"
    sent = [
        payload(Device(spec, {}, ledger=FileLedger(path, skew=None)).report(value, NOON + hours * build.HOUR))
        for hours in range(12)
    ]
    assert len(set(sent)) == 1
    others = {payload(Device(spec, {}, ledger=MemoryLedger()).report(value, NOON)) for _ in range(40)}
    assert len(others) > 1


@pytest.mark.parametrize(("name", "most"), [("duchi", 2), ("block", 9), ("pairs", 2)])
def test_all_numbers_need_no_more_responses_than_the_grid_has_points(name: str, most: int) -> None:
    ledger = MemoryLedger()
    device = Device(build.spec(**SPECS[name][0]), {}, ledger=ledger)
    hours = count()
    # Without its ends, no number of the range may be rounded to an end: that depends on what the device drew.
    for value in [0.0, 8.0, *np.random.default_rng(1).uniform(0, 8, 200)]:
        held: Any = {5: float(value)} if name == "pairs" else float(value)
        device.report(held, NOON + next(hours) * build.HOUR)
    assert responses(ledger) == most
    with ledger.change() as content:
        assert sum(spent.epsilon for spent in content.spent) == pytest.approx(most)


@pytest.mark.parametrize(
    ("domain", "name", "first", "others"),
    [
        (SETS, "set-ss", {1, 5}, [{1}, {1, 6}, set()]),
        (SETS, "set-olh", {1, 5}, [{1}, {1, 6}, set()]),
        (PAIRS, "set-ss", {1: 8.0, 5: 3.3}, [{1: 0.0, 5: 3.3}, {1: 8.0, 6: 3.3}, {}]),
    ],
)
def test_a_changed_set_draws_anew_and_spends_again_and_one_that_returns_does_not(
    domain: Any, name: str, first: Any, others: list[Any]
) -> None:
    spec = build.spec(domain=domain, mechanism={"name": name, "epsilon": 1.0, "lasting_epsilon": 1.5})
    ledger, hours = MemoryLedger(), count()
    device = Device(spec, {}, ledger=ledger)

    def spent_after(held: Any) -> float:
        device.report(held, NOON + next(hours) * build.HOUR)
        with ledger.change() as content:
            return sum(spent.epsilon for spent in content.spent)

    assert [spent_after(first) for _ in range(4)] == [1.0, 1.5, 1.5, 1.5]
    for number, changed in enumerate(others, start=1):
        assert spent_after(changed) == 1.5 + number
        assert responses(ledger) == 1 + number
    assert spent_after(first) == 1.5 + len(others)
    assert responses(ledger) == 1 + len(others)


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.4, 3.5, 7.9])
@pytest.mark.parametrize("name", ["duchi", "block"])
def test_devices_together_round_without_bias(name: str, value: float) -> None:
    # At this epsilon a first report is the rounded number itself, with block from 0 to 8 and with duchi 0 or 1.
    mechanism = SPECS[name][0]["mechanism"] | {"epsilon": 20.0, "lasting_epsilon": 20.0}
    spec, n = build.spec(domain=NUMBER, mechanism=mechanism), 1500
    sent = np.array([payload(Device(spec, {}, ledger=MemoryLedger()).report(value, NOON)) for _ in range(n)], float)
    top = 8 if name == "block" else 1
    u = value / 8 * top
    spread = np.sqrt((u - np.floor(u)) * (np.ceil(u) - u) / n)
    assert abs(sent.mean() - u) <= 5 * spread
    assert {np.floor(u), np.ceil(u)} == set(sent)


def test_a_device_reports_one_attribute_of_its_record_for_ever() -> None:
    keys, _ = SPECS["record"]
    changed = keys | {"mechanism": keys["mechanism"] | {"lasting_epsilon": 3.0}}
    drawn = []
    for _ in range(20):
        ledger, rng = MemoryLedger(), np.random.default_rng(2)
        device = Device(build.spec(**changed), {}, ledger=ledger)
        values = [{"app": int(a), "hours": float(h), "place": 5} for a, h in rng.uniform(0, 8, (6, 2))]
        sent = [payload(device.report(value, NOON + hours * build.HOUR)) for hours, value in enumerate(values)]
        # Two bytes of a payload name the attribute.
        (attribute,) = {each[0] for each in sent}
        drawn.append(attribute)
        # The place has not changed, so its device has spent the budget of one value.
        assert attribute != 2 or responses(ledger) == 1
    assert set(drawn) == {0, 1, 2}
