"""The steps of an estimate name the numbers that it follows from."""

import numpy as np
import pytest

from tests import build
from tests.mechanisms.questions.test_sums import shares
from uldp.mechanisms.questions.explain import explain, find
from uldp.mechanisms.questions.shares import of_values
from uldp.mechanisms.questions.span import Version
from uldp.schemas.errors import RequestError

OF = shares(
    Version(
        build.spec(domain={"labels": ["a", "b", "c"]}, mechanism={"name": "rr", "epsilon": 1}, estimator="empirical")
    ),
    np.array([60, 50, 40]),
)
TAGGED = shares(Version(build.spec(sensitive=[0, 1], tags=[{"name": "home"}])), np.array([30, 30, 20, 30, 20, 20]))


def steps(value: str, of: object = OF) -> dict[str, str]:
    mine, position = find([of], value)  # type: ignore[list-item]
    return dict(step.split(": ", 1) for step in explain(mine, position, mine.span.version.spec.estimators[0]))


def test_each_number_follows_from_the_ones_before() -> None:
    said = steps("a")
    p, q = np.e / (np.e + 2), 1 / (np.e + 2)
    assert said["support"] == "60 of 150 reports support it, 40 %"
    assert said["channel"] == f"a report supports it with p {p:.4g} if its user holds it, and with q {q:.4g} if not"
    assert said["unbiased"].startswith(f"the share is {100 * (0.4 - q) / (p - q):.4g} %")
    assert said["noise"].startswith(f"if nobody held it, {150 * q:.0f} reports would")
    assert said["published"].startswith(f"{100 * (0.4 - q) / (p - q):.4g} %; ")
    assert said["flags"] == "none"
    assert said["privacy"] == "a report spends at most epsilon 1, odds of 2.72 to 1"


def test_what_background_adds_is_said_apart() -> None:
    said = steps("2", TAGGED)
    assert {"visible", "background", "published", "any tag"} <= said.keys()
    assert "hide their value behind it" in steps("home", TAGGED)["published"]


@pytest.mark.parametrize(("value", "message"), [("d", "no value or tag 'd'"), ("", "no value or tag ''")])
def test_an_unknown_value_is_named(value: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        find([OF], value)


def test_a_mean_is_explained_and_has_no_values() -> None:
    of = shares(
        Version(build.spec(domain={"number": {"low": 0, "high": 24}}, mechanism={"name": "duchi", "epsilon": 1.0})),
        np.array([90, 60]),
    )
    said = steps("mean", of)
    assert said["unbiased"].startswith(f"the mean is {of.linear.values[0]:.4g}, with a standard error of ")
    assert said["estimator"] == "auto leaves the unbiased estimate as it is"
    with pytest.raises(RequestError, match="no value or tag 'a' has enough reports here; there are 'mean'"):
        find([of], "a")
    with pytest.raises(RequestError, match=r"c has no values to sum: what is estimated is the mean$"):
        of_values([of])
