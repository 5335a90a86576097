"""The families of mechanisms that a spec can name: their names, parameters, capabilities and estimators."""

from typing import Any, get_args

import numpy as np
import pytest

from tests import build
from tests.build import spec
from tests.families import takers
from uldp.mechanisms.families.local_hashing.spec import LocalHashingSpec
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.kinds import KINDS, RECORD
from uldp.schemas.specs.mechanism_family import MechanismFamily, family, names_where
from uldp.schemas.specs.specfile import SpecError


@pytest.mark.parametrize("name", mechanism_names())
def test_each_name_is_that_of_its_model(name: str) -> None:
    assert get_args(family(name).model_fields["name"].annotation) == (name,)


@pytest.mark.parametrize("model", [*map(family, mechanism_names())])
def test_capabilities_agree_with_each_other(model: type[MechanismFamily]) -> None:
    assert model.domain_kind in {*KINDS, RECORD}
    assert model.utility_optimized or not model.takes_tags
    assert model.takes_tags or not model.answers_zones
    assert family(model.like_with_tags).takes_tags


@pytest.mark.parametrize("kind", [*KINDS, RECORD])
def test_each_kind_of_domain_has_a_mechanism(kind: str) -> None:
    assert names_where(lambda family: family.takes(kind))


@pytest.mark.parametrize("model", [*map(family, mechanism_names())])
def test_auto_is_every_family_s_default(model: type[MechanismFamily]) -> None:
    assert model.estimators[:2] == ("auto", "empirical")
    assert set(model.estimators) <= set(get_args(EstimatorName))


@pytest.mark.parametrize(("epsilon", "buckets"), [(0.1, 2), (1, 4), (3.0, 21), (20, 65_536)])
def test_olh_takes_the_best_number_of_buckets(epsilon: float, buckets: int) -> None:
    """Wang et al. (USENIX Security 2017), section 4.4: e^epsilon + 1."""
    mechanism = build.spec(mechanism={"name": "olh", "epsilon": epsilon}).mechanism
    assert isinstance(mechanism, LocalHashingSpec)
    assert mechanism.buckets == buckets


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"mechanism": {"name": "olh", "epsilon": 1, "buckets": 1}}, "mechanism.buckets: must be 2 or more (got 1)"),
        (
            {"mechanism": {"name": "urr", "epsilon": 1, "buckets": 4}},
            f"mechanism: urr takes no buckets; only {takers('buckets')} do",
        ),
        (
            {"mechanism": {"name": "urr", "epsilom": 1}},
            (
                "mechanism: urr needs epsilon, for example epsilon: 1.0; 'epsilom' is an unknown key (did you mean"
                " 'epsilon'?)"
            ),
        ),
        (
            {"mechanism": {"name": "urr", "epsilon": 1, "share": 0.5}},
            "mechanism.share: only the attributes of a record have shares; remove it",
        ),
        (
            {"mechanism": {"name": "olh", "epsilon": 1}, "domain": {"size": 10_001}},
            (
                "domain: olh hashes each value for each report, so it takes at most 10,000 values, got 10,001; use"
                " linear-olh or pgr, or merge values"
            ),
        ),
        (
            {"mechanism": {"name": "uss", "epsilon": 1, "w": 7}, "domain": {"size": 9}, "sensitive": [0, 1, 2]},
            "mechanism.w: a set of 3 sensitive symbols (values and tags) has 1 to 2 of them; write 2, or auto",
        ),
        (
            {"mechanism": {"name": "ubd", "epsilon": 1, "w": 6}, "domain": {"size": 400}, "sensitive": [*range(76)]},
            (
                "mechanism.w: no design for 76 sensitive symbols (values and tags) of 400 has blocks of 6; the nearest"
                " is 10, or write auto"
            ),
        ),
        (
            {"mechanism": {"name": "olh", "epsilon": 1}, "estimator": ["empirical", "ems"]},
            "estimator ems does not fit olh; choose from auto, empirical, threshold, norm-sub, wls",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_by_the_keys_of_the_file(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**keys)
    assert str(caught.value) == f"spec: {text}"


def test_auto_is_a_number_of_what_devices_know() -> None:
    keys = {"domain": {"size": 400}, "sensitive": [*range(75)], "tags": [{"name": "home"}]}
    for name, parameter, number in (("ubd", "w", 31), ("uss", "w", 14), ("urap", "theta", 148 / 256)):
        auto = build.spec(**keys, mechanism={"name": name, "epsilon": 2.0, parameter: "auto"})
        given = build.spec(**keys, mechanism={"name": name, "epsilon": 2.0, parameter: number})
        assert auto.device_half[f"mechanism.{parameter}"] == number
        assert auto.device_digest == given.device_digest


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_theta_auto_has_the_least_expected_l1(epsilon: float) -> None:
    """Equation (17) of the ULDP paper at equal shares, by the channel of each theta."""
    k, v = 100, 20

    def error(theta: float | str) -> float:
        mechanism = {"name": "urap", "epsilon": epsilon, "theta": theta}
        spec = build.spec(domain={"size": k}, sensitive=[*range(v)], mechanism=mechanism)
        return build.pure_mechanism(spec).channel.expected_l1(np.full(k, 1 / k), 1)

    assert error("auto") == pytest.approx(min(error(step / 256) for step in range(1, 256)), rel=1e-12)


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
