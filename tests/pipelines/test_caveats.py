"""Warnings of ``uldp check``, about windows that cost more than their author probably knows too; and one of jobs."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests import build
from tests.build import HOUR, START
from uldp.pipelines.caveats import caveats, few_reports
from uldp.pipelines.costs import costly
from uldp.schemas.specs.specfile import SpecError


def warned(users: int = 1_000_000, **changes: Any) -> list[str]:
    base = {"domain": {"labels": ["never", "once", "often"]}, "sensitive": ["often"]}
    return list(caveats(build.spec(**base | changes), users))


RR = {"mechanism": {"name": "rr", "epsilon": 1.0}, "sensitive": "all"}
SLIDING = {"window": {"size": "6h", "period": "1h"}, "limits": {"min_reports": 100}}
EARLY = {"window": {"size": "1h", "early_every": "1m"}, "limits": {"min_reports": 100}}
EXACT = {"window": {"size": "1h", "allowed_lateness": "10m", "exact_late": True}, "limits": {"min_reports": 100}}
HUNDRED: dict[str, Any] = {"domain": {"size": 100}, "sensitive": "all"}
GROUPS = {"name": "idue", "groups": [{"values": [0, 1, 2], "epsilon": 1.0}, {"epsilon": 4.0}]}
STRINGS: dict[str, Any] = {
    "domain": {"strings": {"longest": 9}},
    "sensitive": "all",
    "mechanism": {"name": "bloom", "epsilon": 1.0},
}


@pytest.mark.parametrize(
    ("users", "keys", "said"),
    [
        (10**6, {"window": {"size": "1h", "early_every": "1h"}, "tags": [{"name": "home"}]}, None),
        (
            10**6,
            {"window": {"size": "1h", "early_every": "61m"}},
            "window.early_every, 61m, is longer than the window, 1h: no estimate comes early; make it shorter, or",
        ),
        (199, RR | EARLY, "an early pane needs 200 reports in its window"),
        (200, RR | EARLY, None),
        (698, RR | SLIDING, None),
        (697, RR | SLIDING, "most that are published begin every 3h; make period longer"),
        (233, RR | SLIDING, "most that are published begin every 3h; make period longer"),
        (232, RR | SLIDING, "few will be; make period longer"),
        (100, RR | SLIDING, "few will be; make period longer"),
        (99, RR | SLIDING, None),
        (10**6, RR | {"domain": {"size": 5}, "mechanism": GROUPS}, "take oue, or fewer values with the least epsilon"),
        (10**6, HUNDRED | {"mechanism": GROUPS}, None),
        (10**6, EXACT, "not sensitive"),
        (10**6, EXACT | RR, "exact"),
        (10**6, EXACT | RR | {"limits": {"min_reports": 1}}, None),
        (10**6, {"mechanism": {"name": "urr", "epsilon": 8.0}}, None),
        (
            10**6,
            {"mechanism": {"name": "urr", "epsilon": 9.0}},
            "mechanism.epsilon is 9: a reader of one report has odds of up to e^9 = 8,103 to 1 between two values; 8",
        ),
        (
            10**6,
            RR | {"mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 12.0}},
            "mechanism.lasting_epsilon is 12: a reader of two or more reports of one value has odds of up to e^12 = 16",
        ),
        (10**6, RR | {"mechanism": {"name": "rr", "epsilon": 1e-6}}, "take more users than there are in a window"),
        (10**6, STRINGS, "no candidates: reports are counted, but estimates need candidates"),
        (10**6, STRINGS | {"candidates": ["a"]}, None),
    ],
)
def test_each_caveat_is_said_where_it_holds(users: int, keys: dict[str, Any], said: str | None) -> None:
    found = [each for each in warned(users, **keys) if not each.startswith("the expected l1 error") or users == 10**6]
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize(
    "other",
    ["often ", "of\u200bten", "\ufeffoften", "often\xa0", "of\x00ten", "of\u00adten", "often\u3164", "often\ufe0f"],
)
def test_labels_that_look_alike(other: str) -> None:
    said = warned(domain={"labels": ["often", other]})
    assert said[0] == (
        f"labels that look like another and differ, 1 in all ('often' and {other!a}): reports of one value are counted"
        " apart; write it in one way, as devices do"
    )


def test_candidates_that_differ_by_the_composition_of_letters() -> None:
    (said,) = warned(
        10**9, **STRINGS | {"mechanism": {"name": "bloom", "epsilon": 8.0}}, candidates=["caf\xe9", "cafe\u0301"]
    )
    assert said.startswith("candidates that look like another and differ, 1 in all ('caf\\xe9' and 'cafe\\u0301'): ")


@pytest.mark.parametrize("label", ["", " ", "a ", "\u3000a", "\x1b[2J", "\u202ea", "a\u200db", "\u2028", "\ufeffa"])
def test_labels_that_nobody_sees(label: str) -> None:
    said = warned(domain={"labels": ["often", label]})
    assert said[0] == (
        "labels that are empty, begin or end with a space, or have characters that nobody sees, 1 in all"
        f" ({label!a}): remove what is not meant"
    )


def test_labels_in_any_script_and_emoji_have_no_caveat() -> None:
    labels = ["often", "Often", "日本", "می\u200cخواهم", "👨\u200d👩\u200d👧", "❤\ufe0f", "caf\xe9", "a b", "ａ"]
    assert warned(domain={"labels": labels}) == []


@pytest.mark.parametrize(
    ("domain", "tag", "is_value"),
    [
        ({"labels": ["1", "often"]}, "often", True),
        ({"size": 4}, "3", True),
        ({"labels": ["1", "2"]}, "3", False),
        ({"size": 4}, "4", False),
        ({"size": 4}, "home", False),
    ],
)
def test_a_tag_that_has_the_name_of_a_value(domain: dict[str, Any], tag: str, is_value: bool) -> None:
    said = f"tag {tag} has the name of a value: nobody can tell them apart in results; rename the tag"
    found = warned(domain=domain, sensitive=[1 if "size" in domain else "1"], tags=[{"name": tag}])
    assert found == [said] * is_value


@pytest.mark.parametrize("keys", [RR | HUNDRED, STRINGS | {"candidates": ["a"]}], ids=["shares", "strings"])
def test_the_users_that_a_warning_names_mend_it(keys: dict[str, Any]) -> None:
    (warning,) = warned(1000, **keys)
    users = int(warning.split("take ")[1].split(" ")[0].replace(",", ""))
    assert warned(users, **keys) == []
    assert len(warned(users // 2, **keys)) == 1


def test_the_error_is_that_of_the_published_estimator() -> None:
    few = HUNDRED | {"mechanism": {"name": "oue", "epsilon": 0.5}}
    (of_auto,) = warned(20_000, **few)
    (of_empirical,) = warned(20_000, **few, estimator=["empirical", "auto"])
    assert float(of_auto.split(" is ")[1].split(" ")[0]) < 1 < float(of_empirical.split(" is ")[1].split(" ")[0]) <= 2
    assert "that of equal shares, a guess without reports, 0.988: take " in of_auto


@pytest.mark.parametrize("name", ["olh", "ss"])
def test_kept_responses_that_link_the_reports_of_a_device(name: str) -> None:
    (warning,) = warned(**HUNDRED, mechanism={"name": name, "epsilon": 1.0, "lasting_epsilon": 1.0})
    assert "a device sends the response that it keeps, unchanged, in 100% of its reports" in warning
    assert "a reader can link those of a device among 1,000,000 users" in warning
    (less,) = warned(**HUNDRED, mechanism={"name": name, "epsilon": 1.0, "lasting_epsilon": 3.0})
    assert 10 < int(less.split("unchanged, in ")[1].split("%")[0]) < 60


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "olh", "epsilon": 1.0},
        {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 3.0},
        {"name": "ss", "epsilon": 3.0, "lasting_epsilon": 5.0},  # sets of 5 of 100 symbols are few for so many users
    ],
)
def test_responses_that_many_devices_share(mechanism: dict[str, Any]) -> None:
    assert warned(10**9, **HUNDRED, mechanism=mechanism) == []


@pytest.mark.parametrize(
    ("windows", "few"),
    [
        ([9] * 100, None),
        ([9] * 101, "101 of 101"),
        ([10] * 5_000, None),
        ([9] * 101 + [10] * 101, None),
        ([9] * 102 + [10] * 101, "102 of 203"),
        ([0] * 5_000 + [9] * 100, None),  # windows that late and rejected reports name
        ([0] * 5_000 + [9] * 101, "101 of 101"),
    ],
)
def test_most_windows_and_more_than_a_hundred_count_few_reports(windows: Sequence[int], few: str | None) -> None:
    panes = [build.pane([n], start=START + hour * HOUR) for hour, n in enumerate(windows)]
    assert few_reports(panes) == (
        few
        and f"warning: {few} windows count fewer than 10 reports: windows are too short, or a sender has made up event "
        "times; take longer windows, or lower limits.max_age"
    )


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
    ({"size": "1h", "allowed_lateness": "400d"}, ["window.allowed_lateness, 400d:", "9,601 windows", "154 GB"]),
    ({"size": "10h", "period": "1h", "allowed_lateness": "400d"}, ["9,610 windows", "15 GB"]),
    ({"size": "1h", "limits": {"max_clock_skew": "365d"}}, ["limits.max_clock_skew, 365d:", "8,760 windows"]),
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
    (line,) = costly(build.spec(window={"size": "2m"}, **keys), 1000)
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
