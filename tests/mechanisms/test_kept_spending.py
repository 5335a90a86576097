"""What the reports of kept responses spend, by exact enumeration, and what the ledger charges for them."""

import math
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import Ledger, MemoryLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.schemas.specs.collection import CollectionSpec

DAY = 24 * HOUR
# Fractions are exact, but what the mechanism draws by is rounded to floats.
ROUNDING = 1e-12


def of_values(k: int, epsilon: float, lasting: float | None, **changes: Any) -> CollectionSpec:
    mechanism = {"name": "rr", "epsilon": epsilon, "lasting_epsilon": lasting}
    return build.spec(domain={"size": k}, sensitive="all", mechanism=mechanism, **changes)


class Responses:
    """rr with kept responses over k values, as exact fractions of the numbers that the mechanism draws by."""

    def __init__(self, k: int, epsilon: float, lasting: float) -> None:
        mechanism = build_protocol(of_values(k, epsilon, lasting)).mechanism
        assert isinstance(mechanism, Memoized)
        uniform = Fraction(mechanism.inner.uniform_probability)  # type: ignore[attr-defined]
        replaced = Fraction(float(mechanism.noise[0]))
        self._k = k
        self._kept = [uniform / k, uniform / k + 1 - uniform]  # by whether the response is the value
        self._sent = [replaced / k, replaced / k + 1 - replaced]  # by whether the report is the response

    def probability(self, value: int, reports: Sequence[int]) -> Fraction:
        """Return the probability of these reports of one value, from its one response."""
        terms = (
            self._kept[kept == value] * math.prod(self._sent[report == kept] for report in reports)
            for kept in range(self._k)
        )
        return sum(terms, Fraction(0))

    def of_sequence(self, values: Sequence[int], reports: Sequence[int]) -> Fraction:
        """Return the probability of the reports of several values, each from the response to its value."""
        of_each = (
            self.probability(value, [report for each, report in zip(values, reports, strict=True) if each == value])
            for value in set(values)
        )
        return math.prod(of_each, start=Fraction(1))


def spent(ledger: Ledger) -> float:
    with ledger.change() as content:
        return math.fsum(each.epsilon for each in content.spent)


def charged(spec: CollectionSpec, values: Sequence[int]) -> float:
    ledger = MemoryLedger()
    device = Device(spec, {}, ledger=ledger)
    for day, value in enumerate(values):
        device.report(value, START + day * DAY)
    return spent(ledger)


def test_the_example_of_the_docs() -> None:
    responses = Responses(10_000, 0.5, 4.0)
    two = [responses._kept[own] * responses._sent[1] ** 2 for own in (True, False)]
    # Others than the value and the report are alike: the sum over the responses has three kinds of terms.
    others = [k * responses._kept[0] * responses._sent[0] ** 2 for k in (9999, 9998)]
    false = two[1] + responses._kept[1] * responses._sent[0] ** 2 + others[1]
    assert math.log((two[0] + others[0]) / false) == pytest.approx(3.51, abs=0.005)


@pytest.mark.parametrize(("epsilon", "lasting"), [(0.5, 4.0), (1.0, 1.5), (1.0, 1.0), (2.0, 8.0)])
def test_no_reports_of_values_that_change_and_return_alike_spend_more_than_the_ledger_charges(
    epsilon: float, lasting: float
) -> None:
    k, responses = 3, Responses(3, epsilon, lasting)
    # Sequences of values that change alike are those that a permutation of the values turns into each other.
    for values in ([0], [0, 0], [0, 1], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 2], [0, 1, 0, 1]):
        likelihoods = [
            [
                responses.of_sequence([each[value] for value in values], reports)
                for reports in product(range(k), repeat=len(values))
            ]
            for each in ([0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2], [0, 2, 1], [2, 1, 0])
        ]
        assert all(sum(row) == 1 for row in likelihoods)
        worst = math.log(max(max(column) / min(column) for column in zip(*likelihoods, strict=True) if any(column)))
        assert worst <= charged(of_values(k, epsilon, lasting), values) + ROUNDING


@pytest.mark.parametrize(
    ("lasting", "changes", "days"),
    [(3.0, False, 30), (3.0, True, 4), (1.0, False, 30), (1.0, True, 4), (4.0, False, 30), (None, False, 4)],
)
def test_days_of_a_month_that_a_budget_of_4_admits(lasting: float | None, changes: bool, days: int) -> None:
    spec = of_values(40, 1.0, lasting, window={"size": "1d"}, budget={"epsilon": 4, "every": "30d"})
    device, admitted = Device(spec, {}, ledger=MemoryLedger()), 0
    for day in range(30):
        with suppress(BudgetExceededError):
            device.report(day if changes else 7, START + day * DAY)
            admitted += 1
    assert admitted == days


def test_a_refused_second_report_may_be_made_in_the_next_period() -> None:
    ledger = MemoryLedger()
    device = Device(of_values(9, 1.0, 3.0, budget={"epsilon": 3, "every": "30d"}), {}, ledger=ledger)
    device.report(1, START)
    device.report(2, START + DAY)
    with pytest.raises(BudgetExceededError) as caught:
        device.report(1, START + 2 * DAY)
    assert caught.value.until == START + 30 * DAY
    device.report(1, START + 30 * DAY)
    device.report(1, START + 30 * DAY + HOUR)
    assert spent(ledger) == 4.0
