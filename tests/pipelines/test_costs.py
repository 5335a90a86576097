"""Windows that cost more than their author probably knows are refused, or named with their numbers."""

from typing import Any

import pytest

from tests import build
from uldp.pipelines.costs import Costs, costly
from uldp.schemas.specs.specfile import SpecError


def lines(users: int = 1_000_000, limits: dict[str, Any] | None = None, **window: str) -> list[str]:
    return list(costly(build.spec(window=window, limits=limits or {}), users))


COSTLY: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"size": "1h", "period": "1s"},
        ["window.period, 1s:", "3,600 windows", "86,400 estimates and 172,800 files a day"],
    ),
    ({"size": "1ms"}, ["window.size, 1ms:", "86,400,000 windows", "172,800,000 files a day"]),
    ({"size": "2m", "period": "1m"}, ["window.period, 1m:", "1,440 windows", "2,880 files a day"]),
    ({"size": "365d", "early_every": "1s"}, ["31,536,000 early estimates", "86,401 estimates and 172,802 files"]),
    ({"size": "1h", "early_every": "1s"}, ["3,600 early estimates", "172,848 files a day"]),
    ({"size": "1h", "allowed_lateness": "400d"}, ["window.allowed_lateness, 400d:", "9,601 windows", "154 GB"]),
    ({"size": "10h", "period": "1h", "allowed_lateness": "400d"}, ["9,610 windows", "15 GB"]),
    ({"size": "1h", "limits": {"max_clock_skew": "365d"}}, ["limits.max_clock_skew, 365d:", "8,760 windows"]),
    ({"size": "1h", "limits": {"max_age": "3650d"}}, ["limits.max_age, 3650d:", "87,600 windows"]),
    ({"size": "1d", "allowed_lateness": "9d", "users": 10**8}, ["window.allowed_lateness, 9d:", "16 GB"]),
]


@pytest.mark.parametrize(("keys", "texts"), COSTLY, ids=lambda value: str(value)[:60])
def test_a_costly_number_is_named_with_what_it_costs(keys: dict[str, Any], texts: list[str]) -> None:
    (line,) = lines(**keys)
    assert [text for text in texts if text not in line] == []


@pytest.mark.parametrize(
    "keys",
    [
        {"size": "1h"},
        {"size": "1h", "period": "10m", "early_every": "5m", "allowed_lateness": "1d"},
        {"size": "24h", "period": "2m"},
        {"size": "1d", "allowed_lateness": "365d"},
        {"size": "2m", "limits": {"max_clock_skew": "10m"}},
        {"size": "365000d"},
    ],
    ids=str,
)
def test_windows_of_usual_costs_are_not_named(keys: dict[str, Any]) -> None:
    assert lines(users=1000, **keys) == []


def test_tables_of_large_records_in_many_estimates_are_named() -> None:
    keys = {"domain": {"size": 1 << 20}, "estimator": ["wls", "norm-sub", "empirical"]}
    spec = build.spec(window={"size": "2m"}, **keys)
    (line,) = costly(spec, 1000)
    assert Costs.of(spec, 1000).cell_bytes_a_day == 720 * (1 << 20) * 3 * 8
    assert "the estimates of a day have 18 GB, in 720 tables of each estimator" in line


@pytest.mark.parametrize(
    ("size", "period", "windows", "least"),
    [("1h", "1ms", "3,600,000", "360ms"), ("365d", "1m", "525,600", "3153600ms"), ("10001s", "1s", "10,001", "1001ms")],
)
def test_more_than_ten_thousand_windows_a_report_are_refused(size: str, period: str, windows: str, least: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(window={"size": size, "period": period})
    assert str(caught.value) == (
        f"spec: window: period: each report would count in {windows} windows, and 10,000 is the most; write a period of"
        f" {least} or more"
    )


def test_ten_thousand_windows_a_report_are_allowed() -> None:
    assert lines(size="10000s", period="1s") != []
