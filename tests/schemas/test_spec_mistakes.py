"""Each mistake in a spec, and the one line that says what it is."""

from datetime import date
from typing import Annotated, Any

import pytest
import yaml
from pydantic import TypeAdapter

from tests import build
from tests.families import TAKE_TAGS
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.domains import Domain
from uldp.schemas.specs.kinds import KINDS
from uldp.schemas.specs.mistakes import FORMS
from uldp.schemas.specs.specfile import SpecError


def message(**keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        CollectionSpec.parse(build.MINIMAL | keys, source="spec.yaml")
    return str(caught.value)


UNKNOWN_KEY = "unknown key; check the spelling or remove it"
DURATION = "write a duration as a whole number and a unit: 30s, 10m, 1h, 1d"
SENSITIVE = "write all, or a list of values of the domain"
ESTIMATOR = "write one of auto, empirical, threshold, norm-sub, wls, mle, em, ems, or a list of them"
SMALL_NAME = "must be 1 to 64 of the characters a-z, 0-9 and -"
LABEL_READ = "must be text (YAML reads this as"
QUOTES = "if it is a label, write it in quotes"
ONE_DOMAIN = "give one of size, labels, labels_file, number, strings, set, pairs, ranking, record, numbers"
SPREAD = "needs a background, because no value is non-sensitive; add background"
TWO_LABELS = {"labels": ["a", "b"]}
UNLISTED = {
    "number": {"low": 0, "high": 1},
    "strings": {"longest": 8},
    "set": {"of": {"size": 4}, "at_most": 2},
    "ranking": {"of": ["a", "b"]},
    "record": {"place": {"size": 4}},
}


def mechanism(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, **parameters}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"colection": "c"}, f"colection: {UNKNOWN_KEY} (did you mean 'collection'?)"),
        ({"window": "1h"}, "window: must be a mapping, as window: {size: 1h} (got '1h')"),
        ({"domain": ["a", "b"]}, "domain: must be a mapping, as domain: {labels: [cat, dog]}"),
        (
            {"epsilon": 1},
            (
                "epsilon: unknown key here; write it into mechanism or budget, as mechanism: {name: rr, epsilon: 1.0}"
                " or budget: {epsilon: 5.0, every: 7d}"
            ),
        ),
        ({"max_age": "1d"}, "max_age: unknown key here; write it into limits, as limits: {min_reports: 100}"),
        ({"limits": {"min[reports]": 1}}, f"limits.min[reports]: {UNKNOWN_KEY} (did you mean 'min_reports'?)"),
        ({"tags": [{"name": "a", "nmae": "b"}]}, f"tags.0.nmae: {UNKNOWN_KEY} (did you mean 'name'?)"),
        ({"\x1b[31m": 1}, f"'\\x1b[31m': {UNKNOWN_KEY}"),
        ({"window": {}}, "window.size: missing; add it"),
        ({"mechanism": {"epsilon": 1.0}}, "mechanism.name: missing; add it"),
        (
            {"mechanism": {"name": "THRESH", "epsilon": 1.0}},
            "mechanism.name: 'THRESH' is not here; docs/mechanisms.md says why",
        ),
        ({"collection": "c\n"}, f"collection: {SMALL_NAME} (got 'c\\n')"),
        ({"collection": 7}, "collection: must be text (YAML reads this as the number 7; write it in quotes)"),
        ({"version": 0}, "version: must be 1 or more (got 0)"),
        ({"version": 1 << 31}, f"version: must be less than 2,147,483,648 (got {1 << 31})"),
        ({"domain": {"size": 1}}, "domain.size: must be 2 or more (got 1)"),
        (
            {"domain": {"size": 6, "columns": 4}},
            "domain.columns: 4 columns do not divide 6 values into full rows; the nearest number that does is 3",
        ),
        ({"domain": {"columns": 4}}, f"domain: {ONE_DOMAIN} (given: none)"),
        *(
            (
                {"domain": {name: kind, "columns": 2}},
                f"domain: columns are of values by size, labels, labels_file, and {name} lists none; remove columns",
            )
            for name, kind in UNLISTED.items()
        ),
        ({"domain": {"size": (1 << 24) + 1}}, "domain.size: must be 16,777,216 or less (got 16777217)"),
        ({"domain": {"size": 2, **TWO_LABELS}}, f"domain: {ONE_DOMAIN} (given: size, labels)"),
        ({"domain": {"labels": ["a", "b", "a"]}}, "domain: label 'a' occurs twice; labels must differ"),
        (
            {"domain": {"labels": [date(2026, 1, 5), "b"]}},
            f"domain.labels.0: {LABEL_READ} the date 2026-01-05; write it in quotes)",
        ),
        ({"domain": {"labels": ["a"]}}, "domain.labels: must have 2 entries or more"),
        (
            {
                "intervals": "simultaneous",
                "domain": {"number": {"low": 0, "high": 24}},
                "mechanism": mechanism("duchi", epsilon=1),
            },
            "intervals: simultaneous is for shares of values, and no domain has values; remove it",
        ),
        ({"intervals": "all"}, "intervals: must be one of 'each' or 'simultaneous' (got 'all')"),
        (
            {"tags": [{"name": "a", "background": "a.csv", "strength": 0}]},
            "tags.0.strength: must be more than 0 (got 0)",
        ),
        (
            {"tags": [{"name": "a", "strength": 5}]},
            "tags.0: strength says how good a background is; add background, or remove strength",
        ),
        ({"sensitive": 5}, f"sensitive: {SENSITIVE} (got 5)"),
        ({"sensitive": [1, 1.5]}, f"sensitive.1: {SENSITIVE} (YAML reads this as the number 1.5; {QUOTES})"),
        (
            {"sensitive": [1], "domain": {"labels": ["1", "2"]}},
            "sensitive: 1 is the index of one value and the label of another; for the label, write it in quotes: '1'",
        ),
        (
            {"sensitive": ["of\x07ten"], "domain": {"labels": ["often", "never"]}},
            "sensitive: 'of\\x07ten' is not a label of the domain (did you mean 'often'?)",
        ),
        (
            {"sensitive": []},
            "sensitive: the list is empty; name the sensitive values, or choose the mechanism identity",
        ),
        ({"sensitive": [5]}, "sensitive: 5 is outside of the domain 0 to 4"),
        ({"sensitive": [3, 1, 3]}, "sensitive: 3 occurs twice; remove one"),
        ({"sensitive": ["c"], "domain": TWO_LABELS}, "sensitive: 'c' is not a label of the domain"),
        ({"mechanism": mechanism("grr", epsilon=1)}, "mechanism.name: 'grr' has another name here: write rr"),
        ({"mechanism": "urr"}, "mechanism: must be a mapping; write {name: urr, epsilon: 1.0} (got 'urr')"),
        ({"mechanism": mechanism("urr")}, "mechanism: urr needs epsilon, for example epsilon: 1.0"),
        (
            {"mechanism": mechanism("urr", epsilon=0)},
            "mechanism.epsilon: must be 1e-06 or more: with less, a report says almost nothing (got 0)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon=51)},
            (
                "mechanism.epsilon: must be 20 or less: with more, a reader can take each report for the truth, and "
                "above 30 the noise is finer than the draws of a device; choose identity for reports without privacy "
                "(got 51)"
            ),
        ),
        (
            {"mechanism": mechanism("urr", epsilon=yaml.safe_load("1e-1"))},
            (
                "mechanism.epsilon: must be a number (got '1e-1'; write it without quotes, with a point and a signed "
                "exponent, as in 1.0e-3)"
            ),
        ),
        (
            {"mechanism": mechanism("identity", epsilon=1.0)},
            "mechanism: identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism",
        ),
        (
            {"mechanism": mechanism("rappor", epsilon=1.0)},
            "mechanism: rappor needs theta, for example theta: 0.5 (sue and oue set theta themselves)",
        ),
        (
            {"mechanism": mechanism("rappor", epsilon=1.0, theta=1)},
            (
                "mechanism.theta: must be more than 0 and less than 1, and 0.999999 at most, such as 0.5: with 0 no"
                " true bit is set, and with 1 a bit that is not set excludes its value (got 1)"
            ),
        ),
        (
            {"mechanism": mechanism("rr", epsilon=1), "sensitive": [1]},
            f"rr protects every value alike; write sensitive: all, or choose one of {TAKE_TAGS}",
        ),
        ({"mechanism": mechanism("warner", epsilon=1)}, "domain: warner is for two values, got 5; use rr or urr"),
        (
            {"mechanism": mechanism("mangat", epsilon=1), "domain": {"size": 2}},
            "sensitive: mangat needs exactly one sensitive value, for example sensitive: [1]",
        ),
        (
            {"mechanism": mechanism("ss", epsilon=1), "tags": [{"name": "home"}], "sensitive": [1]},
            (
                "tags: ss protects every value alike, hidden or not, so it cannot be the common mechanism; choose uss,"
                f" or another of {TAKE_TAGS}"
            ),
        ),
        (
            {"tags": [{"name": "a b"}]},
            "tags.0.name: must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and - (got 'a b')",
        ),
        ({"tags": {"name": "a"}}, "tags: must be a list, as tags: [{name: home}]"),
        ({"tags": [{"name": "a"}, {"name": "a"}]}, "tag names must differ, got ['a', 'a']"),
        ({"tags": [{"name": "home"}]}, f"tags.0: home {SPREAD}"),
        ({"window": {"size": "1 h"}}, f"window.size: {DURATION} (got '1 h')"),
        ({"window": {"size": "0s"}}, "window: size must be more than 0"),
        ({"window": {"size": "365001d"}}, "window: size must be 365000d or less"),
        (
            {"window": {"size": "1h", "period": "7m"}},
            "window: size must be a multiple of period; 7m does not divide it",
        ),
        (
            {"window": {"size": "1h", "early_every": "500ms"}},
            "window: early_every must be one or more whole seconds; leave it out for no early panes",
        ),
        ({"estimator": "mean"}, f"estimator: {ESTIMATOR} (got 'mean')"),
        ({"estimator": ["mle", "mean"]}, f"estimator.1: {ESTIMATOR} (got 'mean')"),
        ({"estimator": ["mle", "mle"]}, "estimators must differ, got ['mle', 'mle']"),
        (
            {"estimator": ["empirical", "mle", "em"], "mechanism": mechanism("oue", epsilon=1)},
            "estimator em needs each report of oue, but a job keeps only counts; use wls",
        ),
        ({"limits": {"min_reports": 0}}, "limits.min_reports: must be 1 or more (got 0)"),
        ({"limits": {"max_duplicate_ratio": 0}}, "limits.max_duplicate_ratio: must be more than 0 (got 0)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_one_line_of_file_key_value_and_remedy(keys: dict[str, Any], text: str) -> None:
    assert message(**keys) == f"spec.yaml: {text}"


def test_several_mistakes_are_a_line_each() -> None:
    assert message(version=0, typo=1, limits={"min_reports": "x"}).splitlines() == [
        "spec.yaml: version: must be 1 or more (got 0)",
        "spec.yaml: limits.min_reports: must be a whole number (got 'x')",
        f"spec.yaml: typo: {UNKNOWN_KEY}",
    ]


@pytest.mark.parametrize("key", build.MINIMAL)
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(SpecError, match=rf"^spec\.yaml: {key}: missing; add it$"):
        CollectionSpec.parse({name: value for name, value in build.MINIMAL.items() if name != key}, source="spec.yaml")


def form_of(key: str) -> str:
    """The form that an error shows of a key of a spec, or of its domain."""
    return FORMS[key] if key in FORMS else KINDS[key].form


@pytest.mark.parametrize("key", [*FORMS, *(name for name, kind in KINDS.items() if kind.form)])
def test_a_form_that_an_error_shows_is_right(key: str) -> None:
    form = yaml.safe_load(form_of(key))
    if key in Domain.model_fields:
        Domain.model_validate({key: form})
    else:
        field = CollectionSpec.model_fields[key]
        kind: Any = Annotated[field.annotation, key, *field.metadata]
        TypeAdapter(kind).validate_python(form)


def test_each_key_that_takes_a_mapping_or_a_list_shows_a_form() -> None:
    shown = set()
    for model, place in ((CollectionSpec, ""), (Domain, "domain.")):
        for key in model.model_fields:
            said = message(**({"domain": {key: 2.5}} if place else {key: 2.5}))
            if f"{place}{key}: must be a mapping" in said or f"{place}{key}: must be a list" in said:
                assert f", as {key}: {form_of(key)}" in said
                shown.add(key)
    assert shown >= {"domain", "window", "tags", "number", "record", "set"}
