"""The estimator that a spec publishes first: the default, and norm-sub, which is wrong for some mechanisms."""

from typing import Any

import pytest

from tests.build import spec
from uldp.schemas.specs.specfile import SpecError

SOME: dict[str, Any] = {"domain": {"size": 5}, "sensitive": [0, 1]}
EVERY: dict[str, Any] = SOME | {"sensitive": "all"}


def mechanism(name: str) -> dict[str, Any]:
    return {"mechanism": {"name": name, "epsilon": 1.0}}


def record(name: str) -> dict[str, Any]:
    return {
        "domain": {"record": {"app": SOME["domain"] | {"sensitive": [0]}, "hours": {"number": {"low": 0, "high": 24}}}},
        "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": name}, "hours": {"name": "duchi"}}},
        "sensitive": "all",
    }


@pytest.mark.parametrize("keys", [SOME | mechanism("urap"), SOME | mechanism("uoue"), record("urap")])
@pytest.mark.parametrize("estimator", ["norm-sub", ["norm-sub", "wls"]])
def test_norm_sub_cannot_be_the_first_of_bits_that_protect_some_values(keys: dict[str, Any], estimator: Any) -> None:
    with pytest.raises(SpecError) as refused:
        spec(**keys, estimator=estimator)
    assert str(refused.value).startswith("spec: estimator norm-sub cannot be the first of u")
    assert str(refused.value).endswith("write wls first, and norm-sub behind it to compare")


@pytest.mark.parametrize(
    ("keys", "estimator"),
    [
        (SOME | mechanism("urap"), ["wls", "norm-sub"]),
        (EVERY | mechanism("urap"), "norm-sub"),
        (SOME | mechanism("urr"), "norm-sub"),
        (EVERY | mechanism("oue"), "norm-sub"),
    ],
)
def test_norm_sub_may_follow_and_be_the_first_of_others(keys: dict[str, Any], estimator: Any) -> None:
    assert spec(**keys, estimator=estimator).estimators[-1] == "norm-sub"


@pytest.mark.parametrize("keys", [SOME | mechanism("urap"), record("urr")])
def test_the_default_is_auto(keys: dict[str, Any]) -> None:
    assert spec(**keys).estimators == ["auto"]
