"""Budgets over time: what a device may spend, against adding up each period in the plainest way."""

import math
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import HOUR, START
from uldp.mechanisms.devices.spending import Spending, admitted_at, record
from uldp.schemas.specs.budget import Budget

DAY = 24 * HOUR
YEAR = 365 * DAY


def budget(epsilon: float, every: int) -> Budget:
    return Budget(epsilon=epsilon, every=timedelta(milliseconds=every))


@pytest.mark.parametrize(
    ("spent", "time", "expected"),
    [
        ([], 0, 0),
        ([(0, 1.0)], 5, 5),
        ([(0, 2.0)], 5, 10),  # the period of 10 ms is over 10 ms later, and not before
        ([(0, 2.0)], 9, 10),
        ([(0, 2.0)], 10, 10),
        ([(0, 1.0), (4, 1.0)], 5, 10),
        ([(0, 1.0), (4, 2.0)], 5, 14),
        ([(7, 2.0)], 5, 17),  # the clock has been set back
        ([(0, 9.0)], 5, 10),  # other collections have spent more than this budget
        ([(0, math.inf)], 5, 10),  # a report without privacy
    ],
)
def test_a_report_of_1_is_admitted_to_a_budget_of_2(spent: list[tuple[int, float]], time: int, expected: int) -> None:
    assert admitted_at([Spending(*each) for each in spent], 1.0, time, budget(2.0, 10)) == expected


def test_what_spends_nothing_is_always_admitted() -> None:
    assert admitted_at([Spending(0, math.inf)], 0.0, 5, budget(2.0, 10)) == 5


def test_sums_of_floats_fill_a_budget() -> None:
    spent = [Spending(time, 0.1) for time in range(9)]
    assert admitted_at(spent, 0.1, 9, budget(1.0, 100)) == 9
    assert admitted_at([*spent, Spending(9, 0.1)], 0.1, 9, budget(1.0, 100)) == 100


TIMES = st.integers(START, START + 3 * DAY) | st.integers(START - 3 * YEAR, START + 3 * YEAR)
EPSILONS = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])


@settings(max_examples=300, deadline=None)
@given(
    reports=st.lists(st.tuples(TIMES, EPSILONS, st.booleans()), max_size=60),
    every=st.sampled_from([HOUR, 5 * HOUR, DAY, 30 * DAY, 2 * YEAR]),
    most=st.sampled_from([2.0, 3.0, 4.5]),
)
def test_no_period_exceeds_the_budget_and_no_report_is_refused_that_fits(
    reports: list[tuple[int, float, bool]], every: int, most: float
) -> None:
    # Clocks jump as they like. Reports of another collection have no budget, and are entered whatever they spend.
    of_budget = budget(most, every)
    ledger: list[Spending] = []
    entered: list[Spending] = []
    for time, epsilon, asks in reports:
        if asks:
            first = admitted_at(ledger, epsilon, time, of_budget)
            counted = math.fsum(each.epsilon for each in entered if each.time > time - every)
            if first > time:  # then it exceeds the budget, but that spendings of an hour, or an old day, are one
                span = HOUR if all(abs(each.time - time) < YEAR / 2 for each in entered) else DAY
                coarse = math.fsum(each.epsilon for each in entered if each.time > time - every - span)
                assert epsilon
                assert coarse + epsilon > most
                assert admitted_at(ledger, epsilon, first, of_budget) == first
                assert admitted_at(ledger, epsilon, first - 1, of_budget) == first
                continue
            assert not epsilon or counted + epsilon <= most
        ledger = record(ledger, epsilon, time)
        entered.append(Spending(time, epsilon))
    if all(asks for _, _, asks in reports):
        for end in entered:
            assert math.fsum(each.epsilon for each in entered if end.time - every < each.time <= end.time) <= most


def test_a_year_of_reports_each_minute_fits_in_few_entries() -> None:
    ledger: list[Spending] = []
    for number in range(2000):
        ledger = record(ledger, 0.5, START + number * HOUR // 4)
    assert len(ledger) == 500
    ledger = record(ledger, 0.5, START + 3 * YEAR)
    assert len(ledger) <= 500 // 24 + 3
    assert math.fsum(each.epsilon for each in ledger) == 2001 / 2
