"""``uldp check --days``: what devices spend that report for days, and what a reader knows, against closed forms."""

import math
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.exposure import Spent, exposure_text, known
from uldp.schemas.specs.collection import CollectionSpec

LARGE, LASTING = {"name": "rr", "epsilon": 1.0}, {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 3.0}
BUDGET = {"epsilon": 4, "every": "30d"}


def spent(days: int, **keys: Any) -> tuple[int, int, float | None]:
    spec = build.spec(**{"mechanism": LARGE, "window": {"size": "1d"}} | keys)
    found = Spent.of(spec, build_protocol(spec).mechanism.guarantee, days)
    return found.windows, found.reports, found.epsilon


@pytest.mark.parametrize(
    ("days", "keys", "expected"),
    [
        (90, {"window": {"size": "1h"}}, (2160, 2160, 2160.0)),
        (2, {"window": {"size": "6h", "period": "1h"}}, (48, 48, 48.0)),
        (2, {"window": {"size": "6h", "period": "1h"}, "mechanism": LASTING}, (8, 8, 3.0)),
        (1, {"window": {"size": "7d"}}, (1, 1, 1.0)),
        (2, {"mechanism": LASTING}, (2, 2, 3.0)),
        (90, {"mechanism": LASTING, "budget": BUDGET}, (90, 90, 3.0)),
        (90, {"budget": BUDGET}, (90, 12, 12.0)),
        (99, {"budget": BUDGET}, (99, 16, 16.0)),
        (9, {"mechanism": {"name": "identity"}}, (9, 9, None)),
    ],
)
def test_what_a_device_spends(days: int, keys: dict[str, Any], expected: tuple[int, int, float | None]) -> None:
    assert spent(days, **keys) == expected


def shares(reports: int, size: int = 8, **mechanism: Any) -> list[tuple[int, float]]:
    spec = build.spec(domain={"size": size}, sensitive="all", mechanism=mechanism)
    found = known(spec.variables[""], reports)
    assert found is not None
    return found


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("size", [2, 8, 50])
def test_a_reader_of_one_report_of_rr_knows_p(epsilon: float, size: int) -> None:
    p = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    ((reports, share),) = shares(1, size, name="rr", epsilon=epsilon)
    assert reports == 1
    assert share == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 1000))


def test_a_reader_of_two_reports_of_a_bit_gains_nothing_over_one_and_of_three_does() -> None:
    p = math.e / (1 + math.e)
    by_reports = dict(shares(2, 2, name="rr", epsilon=1.0)) | {3: shares(3, 2, name="rr", epsilon=1.0)[-1][1]}
    for reports, share in {1: p, 2: p, 3: p**3 + 3 * p * p * (1 - p)}.items():
        assert by_reports[reports] == pytest.approx(share, abs=5 * math.sqrt(share * (1 - share) / 1000))


def test_more_reports_tell_every_value_and_those_of_a_kept_response_no_more_than_it() -> None:
    anew = shares(2000, name="rr", epsilon=1.0)
    assert [reports for reports, _ in anew[:4]] == [1, 2, 4, 8]
    assert anew[-1][1] > 0.999
    p = math.exp(3) / (math.exp(3) + 7)
    kept = shares(2000, name="rr", epsilon=1.0, lasting_epsilon=3.0)
    assert kept[-1][0] == 2000
    assert kept[-1][1] == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 1000))


@pytest.mark.parametrize(
    "mechanism", [{"name": "oue"}, {"name": "ss"}, {"name": "hrr"}, {"name": "she"}, {"name": "bit-flip", "bits": 2}]
)
def test_other_mechanisms_tell_their_values_too(mechanism: dict[str, Any]) -> None:
    found = shares(64, epsilon=2.0, **mechanism)
    assert found[0][1] > 1.2 / 8
    assert found[-1][1] > 0.9


def test_values_that_are_not_sensitive_are_named() -> None:
    spec = build.spec(domain={"size": 100}, sensitive=[3], mechanism={"name": "urr", "epsilon": 3.0})
    found = known(spec.variables[""], 64)
    assert found is not None
    assert found[0][1] == pytest.approx(1 - math.exp(-3), abs=0.04)
    assert found[-1][1] == 1.0


def test_no_share_where_nothing_is_listed() -> None:
    number = build.spec(domain={"number": {"low": 0, "high": 1}}, mechanism={"name": "duchi", "epsilon": 1.0})
    assert known(number.variables[""], 9) is None
    assert list(exposure_text(number, 1)) == ["24 reports of one value spend epsilon 24"]


@pytest.mark.parametrize(
    ("path", "windows", "one", "nats", "known_of_one", "reports"),
    [
        ("manhattan/spec.yaml", "2,160", "6.43775", "13,905.5", "96.5", 4),
        ("manhattan/nested.yaml", "2,160", "6.43775", "13,905.5", "96.1", 4),
        ("manhattan/zones.yaml", "2,160", "6.43775", "13,905.5", "68.9", 8),
        ("census/spec.yaml", "90", "5.99146", "539.232", "79.8", 4),
    ],
)
def test_the_examples_say_what_they_cost_with_their_budget_and_without_it(
    path: str, windows: str, one: str, nats: str, known_of_one: str, reports: int
) -> None:
    spec, guess = CollectionSpec.load(f"examples/{path}"), "0.25" if "census" in path else "0.16"
    shares = f"a reader knows {known_of_one} % of values after 1 report"
    assert list(exposure_text(spec, 90)) == [
        f"1 report of one value, as the budget admits of {windows}, spends epsilon {one}",
        f"{shares}; a guess knows {guess} %",
    ]
    assert list(exposure_text(spec.model_copy(update={"budget": None}), 90)) == [
        f"{windows} reports of one value spend epsilon {nats}",
        f"{shares}, 100 % after {reports} reports; a guess knows {guess} %",
    ]


def test_a_budget_and_attributes_are_named() -> None:
    spec = build.spec(
        domain={"record": {"app": {"size": 3}, "place": {"size": 4}}},
        mechanism={"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "place": {"name": "oue"}}},
        window={"size": "1d"},
        budget=BUDGET,
    )
    nats, app, place = exposure_text(spec, 90)
    assert nats == "12 reports of one value, as the budget admits of 90, spend epsilon 12"
    assert app.startswith("app: where it is reported, a reader knows ")
    assert " after 6 reports; a guess knows 33 %" in app
    assert " after 6 reports; a guess knows 25 %" in place
