"""The limits of block: its estimator ems, and the least epsilon."""

from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.block.decoder import MAX_EMS_BINS
from uldp.schemas.specs.budget import MIN_EPSILON
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError

NUMBER = {"number": {"low": 0, "high": 24}}


def alone(epsilon: float = 1.0, bins: int = 1024, **keys: Any) -> CollectionSpec:
    return build.spec(domain=NUMBER, mechanism={"name": "block", "epsilon": epsilon, "bins": bins}, **keys)


def of_a_record(epsilon: float = 1.0, bins: int = 1024, **keys: Any) -> CollectionSpec:
    of = {"hours": {"name": "block", "bins": bins}, "place": {"name": "rr"}}
    domain = {"record": {"hours": NUMBER, "place": {"size": 3}}}
    return build.spec(domain=domain, mechanism={"name": "sample-one", "epsilon": epsilon, "of": of}, **keys)


@pytest.mark.parametrize(("spec", "key"), [(alone, "mechanism.bins"), (of_a_record, "mechanism.of.hours.bins")])
@pytest.mark.parametrize("estimator", ["ems", ["empirical", "ems"]])
def test_ems_with_too_many_bins_is_refused_with_a_remedy(spec: Any, key: str, estimator: Any) -> None:
    with pytest.raises(SpecError) as caught:
        spec(bins=MAX_EMS_BINS + 1, estimator=estimator)
    assert str(caught.value) == (
        f"spec: {key}: estimator ems takes at most 1,024 bins, got 1,025; write bins: 1024, or remove estimator ems"
    )


@pytest.mark.parametrize("spec", [alone, of_a_record])
def test_each_estimator_that_a_spec_may_name_is_one_of_its_decoder(spec: Any) -> None:
    assert "ems" in build_protocol(spec(bins=MAX_EMS_BINS, estimator="ems")).decoder.estimators
    assert build_protocol(spec(bins=MAX_EMS_BINS + 1)).decoder.estimators[0] == "auto"


@pytest.mark.parametrize("spec", [alone, of_a_record])
def test_the_least_epsilon_is_that_of_the_mechanism(spec: Any) -> None:
    assert build_protocol(spec(epsilon=MIN_EPSILON)).mechanism.guarantee.epsilon == MIN_EPSILON
    with pytest.raises(SpecError) as caught:
        spec(epsilon=9e-7)
    text = "spec: mechanism.epsilon: must be 1e-06 or more: with less, a report says almost nothing (got 9e-07)"
    assert str(caught.value) == text
