"""Warnings of uldp check."""

from typing import Any

import pytest

from tests import build
from uldp.pipelines.caveats import caveats


def warned(users: int = 1_000_000, **changes: Any) -> list[str]:
    base = {"domain": {"labels": ["never", "once", "often"]}, "sensitive": ["often"]}
    return list(caveats(build.spec(**base | changes), users))


def test_a_sound_spec_has_no_caveat() -> None:
    assert warned(window={"size": "1h", "early_every": "1h"}, tags=[{"name": "home"}]) == []


@pytest.mark.parametrize(("size", "warnings"), [(5, 1), (100, 0)])
def test_groups_that_gain_nothing(size: int, warnings: int) -> None:
    groups = [{"values": [0, 1, 2], "epsilon": 1.0}, {"epsilon": 4.0}]
    said = warned(domain={"size": size}, mechanism={"name": "idue", "groups": groups}, sensitive="all")
    assert sum("take oue, or fewer values with the least epsilon" in each for each in said) == warnings


def test_early_panes_that_come_after_the_window() -> None:
    (warning,) = warned(window={"size": "1h", "early_every": "61m"})
    assert warning == (
        "window.early_every, 61m, is longer than the window, 1h: no estimate comes early; "
        "make it shorter, or leave it out"
    )


@pytest.mark.parametrize(
    ("users", "most"),
    [
        (697, "most that are published begin every 3h"),
        (233, "most that are published begin every 3h"),
        (232, "few will be"),
        (100, "few will be"),
        (698, None),
        (99, None),
    ],
)
def test_which_sliding_windows_will_be_published(users: int, most: str | None) -> None:
    said = warned(users, window={"size": "6h", "period": "1h"}, limits={"min_reports": 100})
    found = [each for each in said if each.startswith("window.period")]
    assert [f"{most}; make period longer" in each for each in found] == ([True] if most else [])


@pytest.mark.parametrize(("users", "warnings"), [(199, 1), (200, 0)])
def test_early_panes_that_never_come(users: int, warnings: int) -> None:
    said = warned(users, window={"size": "1h", "early_every": "1m"}, limits={"min_reports": 100})
    assert sum("an early pane needs 200 reports in its window" in each for each in said) == warnings


@pytest.mark.parametrize(("least", "sensitive"), [(100, ["often"]), (100, "all"), (1, "all")])
def test_the_price_of_exact_late_panes(least: int, sensitive: str | list[str]) -> None:
    window = {"size": "1h", "allowed_lateness": "10m", "exact_late": True}
    said = [
        each for each in warned(window=window, limits={"min_reports": least}, sensitive=sensitive) if "exact" in each
    ]
    assert len(said) == (least > 1)
    assert all(("not sensitive" in each) is (sensitive != "all") for each in said)


@pytest.mark.parametrize(
    "other",
    [
        "often ",
        "of\u200bten",
        "\ufeffoften",
        "often\xa0",
        "often\t",
        "of\x00ten",
        "of\u00adten",
        "often\u3164",
        "often\ufe0f",
    ],
)
def test_labels_that_look_alike(other: str) -> None:
    said = warned(domain={"labels": ["often", other]})
    assert said[0] == (
        f"labels that look like another and differ, 1 in all ('often' and {other!a}): reports of one value are counted"
        " apart; write it in one way, as devices do"
    )


def test_candidates_that_differ_by_the_composition_of_letters() -> None:
    keys = {"domain": {"strings": {"longest": 9}}, "mechanism": {"name": "bloom", "epsilon": 8.0}, "sensitive": "all"}
    (said,) = warned(10**9, **keys, candidates=["caf\xe9", "cafe\u0301"])
    assert said.startswith("candidates that look like another and differ, 1 in all ('caf\\xe9' and 'cafe\\u0301'): ")


@pytest.mark.parametrize(
    "label", ["", " ", "a ", "\u3000a", "a\n", "\x1b[2J", "\u202ea", "a\u200db", "\u2028", "\ufeffa"]
)
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
    ("domain", "tag"),
    [({"labels": ["never", "often"]}, "often"), ({"size": 4}, "3")],
)
def test_a_tag_that_has_the_name_of_a_value(domain: dict[str, Any], tag: str) -> None:
    assert warned(domain=domain, sensitive=[1], tags=[{"name": "home"}, {"name": tag}]) == [
        f"tag {tag} has the name of a value: nobody can tell them apart in results; rename the tag"
    ]


@pytest.mark.parametrize(("domain", "tag"), [({"labels": ["1", "2"]}, "3"), ({"size": 4}, "4"), ({"size": 4}, "home")])
def test_a_tag_that_is_no_value(domain: dict[str, Any], tag: str) -> None:
    assert warned(domain=domain, sensitive=[0 if "size" in domain else "1"], tags=[{"name": tag}]) == []


def test_an_expected_error_that_says_nothing_and_the_users_that_mend_it() -> None:
    few = {"domain": {"size": 100}, "sensitive": "all", "mechanism": {"name": "rr", "epsilon": 1.0}}
    (warning,) = warned(1000, **few)
    assert warning.startswith("the expected l1 error of auto is ")
    assert "that of equal shares, a guess without reports, 0.988: take " in warning
    users = int(warning.split("take ")[1].split(" ")[0].replace(",", ""))
    assert warned(users, **few) == []
    assert len(warned(users // 2, **few)) == 1


def test_the_error_is_that_of_the_published_estimator() -> None:
    few = {"domain": {"size": 100}, "sensitive": "all", "mechanism": {"name": "oue", "epsilon": 0.5}}
    (of_auto,) = warned(20_000, **few)
    (of_empirical,) = warned(20_000, **few, estimator=["empirical", "auto"])
    assert float(of_auto.split(" is ")[1].split(" ")[0]) < 1 < float(of_empirical.split(" is ")[1].split(" ")[0]) <= 2


@pytest.mark.parametrize(("epsilon", "warnings"), [(6.44, 0), (8.0, 0), (8.01, 1), (20.0, 1)])
def test_an_epsilon_that_protects_hardly_anybody(epsilon: float, warnings: int) -> None:
    assert len(warned(mechanism={"name": "urr", "epsilon": epsilon})) == warnings


def test_the_warning_about_an_epsilon_gives_the_odds() -> None:
    one, lasting = warned(mechanism={"name": "rr", "epsilon": 9.0, "lasting_epsilon": 12.0}, sensitive="all")
    assert one == (
        "mechanism.epsilon is 9: a reader of one report has odds of up to e^9 = 8,103 to 1 between two values; 8 or"
        " less leaves a doubt"
    )
    assert "mechanism.lasting_epsilon is 12: a reader of two or more reports of one value has odds" in lasting
    assert "162,755 to 1" in lasting


def test_an_epsilon_that_lets_nothing_through() -> None:
    (warning,) = warned(mechanism={"name": "rr", "epsilon": 1e-6}, sensitive="all")
    assert "the expected l1 error" in warning
    assert "take more users than there are in a window" in warning


OF_HASHES: dict[str, Any] = {"domain": {"size": 100}, "sensitive": "all"}


@pytest.mark.parametrize("name", ["olh", "ss"])
def test_kept_responses_that_link_the_reports_of_a_device(name: str) -> None:
    (warning,) = warned(**OF_HASHES, mechanism={"name": name, "epsilon": 1.0, "lasting_epsilon": 1.0})
    assert "a device sends the response that it keeps, unchanged, in 100% of its reports" in warning
    assert "a reader can link those of a device among 1,000,000 users" in warning
    (less,) = warned(**OF_HASHES, mechanism={"name": name, "epsilon": 1.0, "lasting_epsilon": 3.0})
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
    assert warned(10**9, **OF_HASHES, mechanism=mechanism) == []


def test_strings_without_candidates_or_with_too_few_users_to_find_any() -> None:
    mechanism = {"name": "bloom", "epsilon": 1.0}
    strings: dict[str, Any] = {"domain": {"strings": {"longest": 9}}, "sensitive": "all", "mechanism": mechanism}
    (warning,) = warned(**strings)
    assert warning.startswith("no candidates: reports are counted, but estimates need candidates")
    assert warned(**strings, candidates=["a"]) == []
    (warning,) = warned(1000, **strings, candidates=["a"])
    users = int(warning.split("take ")[1].split(" ")[0].replace(",", ""))
    assert warned(users, **strings, candidates=["a"]) == []
    assert len(warned(users // 2, **strings, candidates=["a"])) == 1
