"""A collection of a record: attributes, each with a domain and a mechanism of its own."""

from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.families import FOR_RECORDS, TAKE_TAGS
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import names_where
from uldp.schemas.specs.mistakes import FORMS as SHOWN
from uldp.schemas.specs.specfile import SpecError

APP: dict[str, Any] = {"labels": ["mail", "maps", "clinic"], "sensitive": ["clinic"]}
HOURS: dict[str, Any] = {"number": {"low": 0, "high": 24}}


def spec(app: Any = None, hours: Any = None, of: Any = None, **keys: Any) -> CollectionSpec:
    record = {"app": APP if app is None else app, "hours": HOURS if hours is None else hours}
    of = {"app": {"name": "urr"}, "hours": {"name": "duchi"}} if of is None else of
    mechanism = {"name": "sample-one", "epsilon": 1.5, "of": of}
    return build.spec(**{"domain": {"record": record}, "mechanism": mechanism} | keys)


def message(**keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        spec(**keys)
    return str(caught.value).removeprefix("spec: ")


def of(app: Any, hours: Any) -> dict[str, Any]:
    return {"of": {"app": app, "hours": hours}}


def test_each_attribute_is_a_variable_in_the_order_of_the_record() -> None:
    both = spec(of={"hours": {"name": "duchi", "share": 0.3}, "app": {"name": "urr", "share": 0.7}})
    assert list(both.variables) == ["app", "hours"]
    app, hours = both.variables.values()
    assert (app.mechanism.name, app.mechanism.epsilon, app.share) == ("urr", 1.5, 0.7)
    assert (hours.mechanism.name, hours.mechanism.epsilon, hours.share) == ("duchi", 1.5, 0.3)
    assert app.labels == ["mail", "maps", "clinic"]
    assert app.sensitive_mask.tolist() == [False, False, True]
    assert (app.read("maps"), hours.read("7.5")) == (1, 7.5)


def test_attributes_have_tags_with_backgrounds(tmp_path: Path) -> None:
    (tmp_path / "home.csv").write_text("mail,1\nmaps,3\n")
    keys = spec().model_dump(mode="json", exclude_none=True)
    keys["domain"]["record"]["app"]["tags"] = [{"name": "home", "background": "home.csv"}]
    app = CollectionSpec.parse(keys, base=tmp_path).variables["app"]
    assert [tag.name for tag in app.tags] == ["home"]
    assert app.background.tolist() == [[0.25, 0.75, 0]]


def test_a_record_has_no_values_of_its_own() -> None:
    with pytest.raises(ValueError, match=r"^c collects a record; name one of its variables$"):
        _ = spec().labels


@pytest.mark.parametrize("estimator", ["mle", "empirical", ["threshold", "em"]])
def test_an_estimator_needs_one_attribute_that_has_it(estimator: Any) -> None:
    assert spec(estimator=estimator).estimators == ([estimator] if isinstance(estimator, str) else estimator)


IN_A_RECORD = names_where(lambda family: family.is_part()).split(", ")
OWN = "a package may bring one of your own: docs/own_mechanism.md"
PARTS = " or ".join(str(IN_A_RECORD)[1:-1].rsplit(", ", 1))
DUCHI = {"name": "duchi"}
URR = {"name": "urr"}
FORMS = "size, labels, labels_file, number, strings, set, pairs, ranking"


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (of(URR, 3), "mechanism.of.hours: must be a mapping (got 3)"),
        ({"of": {"app": URR}}, "mechanism.of.hours: missing; add the mechanism of this attribute"),
        (
            {"of": {"app": URR, "hours": DUCHI, "hour": DUCHI}},
            "mechanism.of.hour: not an attribute of domain.record; remove it (did you mean 'hours'?)",
        ),
        (
            of({"name": "duchii"}, DUCHI),
            f"mechanism.of.app.name: 'duchii': did you mean 'duchi'? It must be one of {PARTS}",
        ),
        (of({"name": "sample-one"}, DUCHI), f"mechanism.of.app.name: must be one of {PARTS} (got 'sample-one'; {OWN})"),
        (
            of({"name": "urr", "epsilon": 2}, DUCHI),
            "mechanism.of: 'app' has the epsilon of sample-one; remove its own epsilon",
        ),
        (
            of({"name": "urr", "share": 0.7}, DUCHI),
            "mechanism: hours has no share; give each attribute a share, or none for equal shares",
        ),
        (
            of({"name": "urr", "share": 0.7}, {"name": "duchi", "share": 0.2}),
            "mechanism: the shares must sum to 1, got 0.9",
        ),
        (
            of({"name": "urr", "share": 1}, {"name": "duchi", "share": 0}),
            "mechanism.of.hours.share: must be more than 0 (got 0)",
        ),
        (
            of(DUCHI, DUCHI),
            (
                "mechanism.of.app: duchi is for a number, and the domain is several values; choose one of "
                + names_where(lambda family: family.is_part() and family.takes("values"))
            ),
        ),
        (
            {"mechanism": {"name": "urr", "epsilon": 1}},
            f"mechanism: a record needs {FOR_RECORDS}, not urr; give each attribute a mechanism in of",
        ),
        ({"domain": {"size": 3}}, "mechanism: sample-one is for a record; give domain.record, or another mechanism"),
        (
            {"sensitive": ["clinic"]},
            "sensitive: the attributes of a record have their own; move sensitive to domain.record",
        ),
        ({"domain": {"record": {}}}, "domain.record: must have 1 entries or more"),
        ({"domain": {"record": [1]}}, f"domain.record: must be a mapping, as record: {SHOWN['record']}"),
        (
            {"domain": {"record": {"A b": {"size": 2}}}},
            "domain.record.A b: must be 1 to 64 of the characters a-z, 0-9, _ and - (got 'A b')",
        ),
        (
            {"domain": {"record": {4: {"size": 2}}}},
            "domain.record.4: must be text (YAML reads this as the number 4; write it in quotes)",
        ),
        (
            {"app": {"record": {"b": {"size": 2}}}},
            "domain.record.app: an attribute cannot be a record; add its attributes to the outer record",
        ),
        ({"app": {"sensitive": "all"}}, f"domain.record.app: give one of {FORMS} (given: none)"),
        (
            {"app": APP | {"tags": [{"name": "home", "background": "no.csv"}]}},
            "domain.record.app.tags.0.background: no.csv: No such file or directory; check the path",
        ),
        (
            of({"name": "rr"}, DUCHI),
            f"domain.record.app: rr protects every value alike; write sensitive: all, or choose one of {TAKE_TAGS}",
        ),
        (
            {"hours": HOURS | {"sensitive": [1]}},
            "domain.record.hours: duchi protects every number alike; remove sensitive",
        ),
        (
            {"estimator": "ems"},
            "estimator ems does not fit urr, duchi; choose from auto, empirical, threshold, norm-sub, wls, mle, em",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_one_line_with_the_key_and_the_remedy(keys: dict[str, Any], text: str) -> None:
    assert message(**keys).splitlines()[0] == text
    assert len(message(**keys).splitlines()) == 1


@pytest.mark.parametrize("name", ["sensitive", "estimator", "of", "name"])
def test_an_attribute_may_be_named_as_a_key(name: str) -> None:
    mechanism = {"name": "sample-one", "epsilon": 1.0, "of": {name: {"name": "rr"}}}
    assert list(build.spec(domain={"record": {name: {"size": 2}}}, mechanism=mechanism).variables) == [name]
    with pytest.raises(SpecError, match=rf"^spec: domain\.record\.{name}\.size: must be 2 or more \(got 1\)$"):
        build.spec(domain={"record": {name: {"size": 1}}}, mechanism=mechanism)
