"""Specs of tables of several attributes: which views they have, and what is said of those that are wrong."""

from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError

RECORD: dict[str, Any] = {"version": {"size": 3}, "os": {"labels": ["a", "b"]}, "crash": {"size": 2}}


def spec(views: Any = "pairs", record: Any = RECORD, **keys: Any) -> CollectionSpec:
    mechanism = {"name": "marginals", "epsilon": 1.0, "views": views}
    return build.spec(domain={"record": record}, mechanism=mechanism, **keys)


@pytest.mark.parametrize(
    ("views", "held"),
    [
        ("pairs", [["version", "os"], ["version", "crash"], ["os", "crash"]]),
        ("auto", [["version", "os"], ["version", "crash"], ["os", "crash"]]),
        ("triples", [["version", "os", "crash"]]),
        ([["crash", "os"], ["version"]], [["os", "crash"], ["version"]]),
    ],
)
def test_devices_know_the_views(views: Any, held: list[list[str]]) -> None:
    assert spec(views).device_half["mechanism.views"] == held


def test_what_is_asked_for_is_none_of_the_devices_business() -> None:
    assert spec(given=[["version", "crash"]]).device_digest == spec().device_digest
    assert spec("triples").device_digest != spec().device_digest


def test_no_two_attributes_are_one_variable() -> None:
    record = {"ab": {"size": 2}, "a": {"size": 3}, "b": {"size": 4}}
    assert spec(record=record).variable(("a", "b")) is None
    assert spec(record=record).variable(("ab",)) is not None


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"views": "all"},
            "mechanism.views: write pairs, triples, auto, or a list of views, such as [[version, crash]]",
        ),
        ({"views": []}, "mechanism.views: list one view or more, such as [[version, crash]]"),
        ({"views": [["os", "os"]]}, "mechanism.views: view 1 must have 1 to 8 attributes, each once, got os, os"),
        ({"views": [["os", "version"]]}, "mechanism.views: no view has crash; add one, or remove the attribute"),
        (
            {"views": [["os", "version"], ["crahs"]]},
            "mechanism.views: crahs is no attribute of domain.record (did you mean 'crash'?)",
        ),
        (
            {"record": {"os": {"size": 2}}},
            "mechanism.views: needs 2 attributes or more; add some, or choose sample-one",
        ),
        ({"given": [["os", "crsh"]]}, "given.0: 'crsh' is no attribute of domain.record (did you mean 'crash'?)"),
        ({"given": [["os", "os"]]}, "given.0: write two attributes: [what is given, what is asked for]"),
        ({"given": [["os", "crash"], ["os", "crash"]]}, "given.1: occurs twice; remove one"),
        (
            {"views": [["os", "version"], ["crash"]], "given": [["crash", "os"]]},
            "given.0: no view holds crash and os; add views: [crash, os]",
        ),
        (
            {"record": RECORD | {"hours": {"number": {"low": 0, "high": 24}}}},
            "domain.record.hours: marginals is for listed values, and this is a number; give it labels or a size",
        ),
        (
            {"record": RECORD | {"os": {"size": 2, "sensitive": [0]}}},
            "domain.record.os: marginals protects every value alike; write sensitive: all",
        ),
    ],
)
def test_mistakes_are_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        spec(**keys)
    assert str(caught.value).startswith(f"spec: {message}")
    assert "\n" not in str(caught.value)


def test_given_is_for_tables_of_two_attributes() -> None:
    with pytest.raises(SpecError, match="given: rr has no tables of two attributes; remove it, or choose marginals"):
        build.spec(given=[["a", "b"]], mechanism={"name": "rr", "epsilon": 1.0})


def test_tables_that_are_too_large_are_refused() -> None:
    record = {"version": {"size": 2_000}, "place": {"size": 600}, "os": {"size": 2}}
    with pytest.raises(ValueError, match="1,205,200 cells, and 1,048,576 are the most; that of version x place is the"):
        build_protocol(spec(record=record))
