"""Devices with a budget: what they enter in the ledger, when they refuse, and what a refusal says."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import Ledger, MemoryLedger
from uldp.mechanisms.devices.randomness import SystemRandomness
from uldp.mechanisms.devices.spending import BudgetExceededError, Spending
from uldp.schemas.arrays import Floats
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec

DAY = 24 * HOUR
SIZE = 9000


def make_spec(every: str = "30d", budget: float = 4, **changes: Any) -> CollectionSpec:
    base: dict[str, Any] = {"domain": {"size": SIZE}, "mechanism": {"name": "rr", "epsilon": 1.0}}
    return build.spec(**base | {"budget": {"epsilon": budget, "every": every}} | changes)


def memoizing(**changes: Any) -> CollectionSpec:
    return make_spec(mechanism={"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0}, **changes)


def spent(ledger: Ledger) -> list[tuple[int, float]]:
    with ledger.change() as content:
        return [(each.time, each.epsilon) for each in content.spent]


def report(spec: CollectionSpec, ledger: Ledger, days: float, value: int = 7777) -> Any:
    """The payload of a device that has just started, days after the first."""
    message = Device(spec, {}, ledger=ledger).report(value, START + round(days * DAY))
    return report_store().decode(message)[1]["payload"]


def test_a_period_takes_what_the_budget_has_and_the_next_takes_as_much() -> None:
    ledger, spec = MemoryLedger(), make_spec()
    for day in range(4):
        report(spec, ledger, day)
    for later in (4.0, 20.0, 29.99):
        with pytest.raises(BudgetExceededError) as caught:
            report(spec, ledger, later)
        assert caught.value.until == START + 30 * DAY
    report(spec, ledger, 30)
    with pytest.raises(BudgetExceededError) as caught:
        report(spec, ledger, 30)
    assert caught.value.until == START + 31 * DAY


def test_a_refusal_names_the_collection_the_budget_and_the_time_and_no_value() -> None:
    ledger = MemoryLedger()
    for _ in range(4):
        report(make_spec(), ledger, 0)
    with pytest.raises(ValueError, match=r"^c: this report would exceed") as caught:
        report(make_spec(), ledger, 1)
    assert str(caught.value) == (
        "c: this report would exceed the budget of the user, epsilon 4 every 30d; the device can report again from"
        " 2026-01-31T09:00:00Z on"
    )
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_all_collections_and_versions_spend_together() -> None:
    ledger, spec = MemoryLedger(), make_spec(budget=3)
    report(make_spec(version=2), ledger, 0)
    report(build.spec(collection="without-a-budget"), ledger, 1, 3)
    report(make_spec(collection="d"), ledger, 2)
    with pytest.raises(BudgetExceededError):
        report(spec, ledger, 3)
    report(build.spec(collection="without-a-budget"), ledger, 3, 3)  # it has none to exceed
    assert [epsilon for _, epsilon in spent(ledger)] == [1.0] * 4


def test_what_a_report_spends_is_on_the_disk_before_it_is_drawn() -> None:
    class PowerCut(SystemRandomness):
        def random(self, size: int | tuple[int, ...]) -> Floats:
            raise InterruptedError

    ledger = MemoryLedger()
    with suppress(InterruptedError):
        Device(make_spec(), {}, PowerCut(), ledger).report(5, START)
    assert spent(ledger) == [(START, 1.0)]


def test_a_response_is_spent_by_its_second_report_and_later_ones_spend_nothing() -> None:
    ledger, spec = MemoryLedger(), memoizing()
    for day in range(9):
        report(spec, ledger, day, value=5)
    for day in (9, 10):
        report(spec, ledger, day, value=6)
    assert [epsilon for _, epsilon in spent(ledger)] == [1.0] * 4
    with pytest.raises(BudgetExceededError) as caught:  # so a refusal says that the value is new, or was sent once
        report(spec, ledger, 11, value=7777)
    assert "7777" not in str(caught.value)
    report(spec, ledger, 11, value=5)


def test_a_refused_response_is_not_kept() -> None:
    ledger = MemoryLedger()
    for day in (-1, 0):
        report(memoizing(), ledger, day, value=5)
    with ledger.change() as content:
        before = dict(content.kept)
    with pytest.raises(BudgetExceededError):
        report(memoizing(budget=2), ledger, 1, value=6)
    with ledger.change() as content:
        assert content.kept == before


def test_a_budget_needs_a_ledger() -> None:
    with pytest.raises(ValueError, match="c has budget, so its devices need a ledger, such as FileLedger"):
        Device(make_spec(), {})


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(-3 * DAY, 3 * DAY), st.sampled_from([1, 2, 3]), st.booleans()), min_size=1, max_size=40
    )
)
def test_no_period_exceeds_the_budget_whatever_clocks_and_restarts_do(steps: list[tuple[int, int, bool]]) -> None:
    ledger, time, sent = MemoryLedger(), START, []
    specs = {
        each: make_spec("2d", collection=f"c{each}", mechanism={"name": "rr", "epsilon": each}) for each in (1, 2, 3)
    }
    devices: dict[int, Device] = {}
    for step, epsilon, restarts in steps:
        time += step
        if restarts or epsilon not in devices:
            devices[epsilon] = Device(specs[epsilon], {}, ledger=ledger)
        with suppress(BudgetExceededError):
            devices[epsilon].report(5, time)
            sent.append(Spending(time, epsilon))
    for end in sent:
        assert sum(each.epsilon for each in sent if end.time - 2 * DAY < each.time <= end.time) <= 4
