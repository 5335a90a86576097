"""Kinds of domain that packages bring: read under their key, written again, and named where they are wrong."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests import build
from uldp.schemas.specs import kinds
from uldp.schemas.specs.domains import Domain
from uldp.schemas.specs.kinds import KINDS, OWN, Sets
from uldp.schemas.specs.kinds.sets import Items
from uldp.schemas.specs.specfile import SpecError, SpecFolder


class Hours(Sets):
    """Hours of a day."""

    name: ClassVar = "hours"
    holds: ClassVar = "hours of a day"


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: EntryPoint(name, f"{kind.__module__}:{kind.__name__}", kinds.GROUP) for name, kind in OWN.items()}
    brought = {"hours": f"{__name__}:Hours", "pi": "math:pi", "days": f"{__name__}:Hours"}
    points = {name: EntryPoint(name, value, kinds.GROUP) for name, value in brought.items()}
    monkeypatch.setattr(kinds, "_registered", lambda: own | points)


OF_HOURS: dict[str, Any] = {"of": {"size": 24}, "at_most": 3}


@pytest.mark.parametrize(("name", "value"), [("pi", "math:pi"), ("days", f"{__name__}:Hours")])
def test_what_is_no_kind_of_its_name_is_an_error(name: str, value: str) -> None:
    with pytest.raises(TypeError, match=f"^{value} is no Kind of the name {name}; see docs/own_mechanism.md$"):
        _ = KINDS[name]


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ({"hours": OF_HOURS | {"at_most": 0}}, "domain.hours.at_most: must be 1 or more"),
        ({"hours": {"of": {"size": 24}}}, "domain.hours.at_most: missing; add it"),
        ({"hours": {"of": {"size": 24, "labels": ["a", "b"]}, "at_most": 1}}, "domain.hours.of: give one of size"),
        (
            {"hours": {"of": {"strings": {"longest": 9}}, "at_most": 3}},
            "domain.hours: of: hours of a day are of a list; give size, labels or labels_file in place of strings",
        ),
        ({"hours": OF_HOURS, "size": 4}, "domain: give one of size, .*, hours, .* \\(given: size, hours\\)"),
        ({"hours": OF_HOURS}, "mechanism: rr is for several values, and the domain is hours of a day; choose one of"),
    ],
)
def test_each_mistake_is_named(domain: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        build.spec(domain=domain, mechanism={"name": "rr", "epsilon": 1.0})


def test_estimates_of_one_kind_are_not_those_of_another(tmp_path: Path) -> None:
    hours, sets = (kind(of=Items(size=24), at_most=3).located(SpecFolder(tmp_path)) for kind in (Hours, Sets))
    assert hours.quantities == hours.quantities
    assert hours.quantities != sets.quantities


def test_sets_of_a_package_are_no_attributes_of_a_record_either() -> None:
    message = "an attribute cannot be of hours of a day; give hours of a day a collection of their own"
    with pytest.raises(ValueError, match=message):
        Domain.model_validate({"record": {"a": {"size": 2}, "b": {"hours": OF_HOURS}}})
