"""The collection spec: what it accepts, and the one line that it says of each mistake."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schemas.collection import CollectionSpec, WindowSpec
from schemas.durations import format_duration, milliseconds, parse_duration
from schemas.specfile import SpecError

SAMPLE = """
collection: manhattan-checkins        # [a-z0-9-]{1,64}
version: 1
domain: {size: 625}                   # or {labels: [...]}, or {labels_file: cells.csv}
sensitive: [51, 52, 77]               # X_S, common to all users; `all` for plain LDP mechanisms
mechanism: {name: urr, epsilon: 6.4378}
tags:                                 # PUM's bots; absent: no PUM
  - {name: home, background: background/home.csv}
  - {name: others}                    # no background: proportional to r̂ over X_N
window: {size: 1h, early_every: 30s, allowed_lateness: 1d}   # period: for sliding
estimator: mle                        # the published one; a list publishes several
limits: {min_reports: 1000, max_rejected_ratio: 0.1}
"""

MINIMAL: dict[str, Any] = {
    "collection": "c",
    "version": 1,
    "domain": {"size": 5},
    "mechanism": {"name": "urr", "epsilon": 1.0},
    "window": {"size": "1h"},
}


def parse(**keys: Any) -> CollectionSpec:
    return CollectionSpec.parse(MINIMAL | keys, source="spec.yaml")


def message(**keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        parse(**keys)
    return str(caught.value)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    (tmp_path / "background").mkdir()
    (tmp_path / "background" / "home.csv").write_text("value,weight\n3,1\n4,2.5\n3,0.5\n")
    path = tmp_path / "spec.yaml"
    path.write_text(SAMPLE, encoding="utf-8")
    return path


def test_the_sample_says_all_that_there_is_to_say(sample: Path) -> None:
    spec = CollectionSpec.load(sample)
    assert spec.key == ("manhattan-checkins", 1)
    assert spec.size == 625
    assert spec.labels[:2] == ["0", "1"]
    assert np.flatnonzero(spec.sensitive_mask).tolist() == [51, 52, 77]
    assert (spec.mechanism.name, spec.mechanism.epsilon, spec.mechanism.theta) == ("urr", 6.4378, None)
    assert not spec.mechanism.reports_bits
    assert [tag.name for tag in spec.tags] == ["home", "others"]
    assert spec.background.shape == (2, 625)
    assert {int(x): float(spec.background[0, x]) for x in np.flatnonzero(spec.background[0])} == {3: 0.375, 4: 0.625}
    assert np.isnan(spec.background[1]).all()
    assert spec.window.size == timedelta(hours=1)
    assert spec.window.period is None
    assert spec.window.early_every == timedelta(seconds=30)
    assert spec.window.allowed_lateness == timedelta(days=1)
    assert spec.estimators == ["mle"]
    assert (spec.limits.min_reports, spec.limits.max_rejected_ratio) == (1000, 0.1)


def test_what_is_left_out_has_a_default() -> None:
    spec = parse()
    assert spec.sensitive_mask.all()
    assert spec.tags == []
    assert spec.background.shape == (0, 5)
    assert (spec.window.early_every, spec.window.allowed_lateness) == (None, timedelta(0))
    assert spec.estimators == ["empirical"]
    assert (spec.limits.min_reports, spec.limits.max_rejected_ratio) == (1, None)
    assert spec.limits.max_clock_skew == timedelta(minutes=10)


def test_a_spec_written_out_is_the_same_spec(sample: Path) -> None:
    spec = CollectionSpec.load(sample)
    written = yaml.safe_dump(spec.model_dump(mode="json", exclude_none=True))
    sample.write_text(written)
    assert CollectionSpec.load(sample).model_dump() == spec.model_dump()


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("identity", {"mechanism": {"name": "identity"}}),
        ("rr", {}),
        ("warner", {"domain": {"size": 2}}),
        ("mangat", {"domain": {"size": 2}, "sensitive": [1]}),
        ("urr", {"sensitive": [0, 4]}),
        ("rappor", {"mechanism": {"name": "rappor", "epsilon": 1, "theta": 0.5}}),
        ("sue", {}),
        ("oue", {}),
        ("urap", {"sensitive": [0, 4], "mechanism": {"name": "urap", "epsilon": 1, "theta": 0.9}}),
        ("uoue", {"sensitive": [0, 4]}),
    ],
)
def test_each_mechanism_has_a_spec(name: str, extra: dict[str, Any]) -> None:
    spec = parse(**{"mechanism": {"name": name, "epsilon": 1}} | extra)
    assert spec.mechanism.name == name
    assert spec.mechanism.reports_bits == (name in {"rappor", "sue", "oue", "urap", "uoue"})


UNKNOWN_KEY = "unknown key; check the spelling or remove it"
DURATION = "write a duration as a whole number and a unit: 30s, 10m, 1h, 1d"
SENSITIVE = "write all, or a list of values of the domain"
ESTIMATOR = "write one of empirical, threshold, norm-sub, mle, em, or a list of them"
MECHANISMS = "'identity', 'rr', 'warner', 'mangat', 'urr', 'rappor', 'sue', 'oue', 'urap' or 'uoue'"
ONE_DOMAIN = "give one of size, labels, labels_file"
SPREAD = "without background is spread over the non-sensitive values, and there are none; give it a background"
TWO_LABELS = {"labels": ["a", "b"]}


def mechanism(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, **parameters}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"colection": "c"}, f"colection: {UNKNOWN_KEY}"),
        ({"int": 1}, f"int: {UNKNOWN_KEY}"),
        ({"limits": {"min[reports]": 1}}, f"limits.min[reports]: {UNKNOWN_KEY}"),
        ({"window": {"size": "1h", "lateness": "1h"}}, f"window.lateness: {UNKNOWN_KEY}"),
        ({"window": {}}, "window.size: missing; add it"),
        ({"mechanism": {"epsilon": 1.0}}, "mechanism.name: missing; add it"),
        ({"collection": "C"}, "collection: String should match pattern '^[a-z0-9-]{1,64}$' (got 'C')"),
        ({"collection": "c\n"}, "collection: String should match pattern '^[a-z0-9-]{1,64}$' (got 'c\\n')"),
        ({"collection": 7}, "collection: Input should be a valid string (got 7)"),
        ({"version": 0}, "version: Input should be greater than or equal to 1 (got 0)"),
        ({"version": 1 << 31}, f"version: Input should be less than {1 << 31} (got {1 << 31})"),
        ({"version": "1"}, "version: Input should be a valid integer (got '1')"),
        ({"version": True}, "version: Input should be a valid integer (got True)"),
        ({"domain": {"size": 1}}, "domain.size: Input should be greater than or equal to 2 (got 1)"),
        (
            {"domain": {"size": (1 << 24) + 1}},
            f"domain.size: Input should be less than or equal to {1 << 24} (got {(1 << 24) + 1})",
        ),
        ({"domain": {}}, f"domain: {ONE_DOMAIN} (given: none)"),
        ({"domain": {"size": 2, **TWO_LABELS}}, f"domain: {ONE_DOMAIN} (given: size, labels)"),
        ({"domain": {"labels": ["a", "b", "a"]}}, "domain: label 'a' stands twice; labels must differ"),
        ({"domain": {"labels": ["yes", True]}}, "domain.labels.1: Input should be a valid string (got True)"),
        ({"sensitive": 5}, f"sensitive: {SENSITIVE} (got 5)"),
        ({"sensitive": "everything"}, f"sensitive: {SENSITIVE} (got 'everything')"),
        ({"sensitive": [1, 1.5]}, f"sensitive.1: {SENSITIVE} (got 1.5)"),
        ({"sensitive": []}, "sensitive: empty; name the sensitive values, or choose the mechanism identity"),
        ({"sensitive": [5]}, "sensitive: 5 is outside of the domain 0 to 4"),
        ({"sensitive": [-1]}, "sensitive: -1 is outside of the domain 0 to 4"),
        ({"sensitive": [3, 1, 3]}, "sensitive: 3 stands twice; remove one"),
        ({"sensitive": ["a"]}, "sensitive: 'a' is a label, but the domain has only a size"),
        ({"sensitive": ["c"], "domain": TWO_LABELS}, "sensitive: 'c' is no label of the domain"),
        (
            {"mechanism": mechanism("olh", epsilon=1)},
            f"mechanism.name: Input should be {MECHANISMS} (got 'olh')",
        ),
        ({"mechanism": "urr"}, "mechanism: must be a mapping (got 'urr')"),
        ({"mechanism": mechanism("urr")}, "mechanism: urr needs epsilon, for example epsilon: 1.0"),
        (
            {"mechanism": mechanism("urr", epsilon=0)},
            "mechanism.epsilon: Input should be greater than 0 (got 0.0)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon=51)},
            "mechanism.epsilon: Input should be less than or equal to 50 (got 51.0)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon=float("nan"))},
            "mechanism.epsilon: Input should be less than or equal to 50 (got nan)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon="1.0")},
            "mechanism.epsilon: Input should be a valid number (got '1.0')",
        ),
        (
            {"mechanism": mechanism("identity", epsilon=1.0)},
            "mechanism: identity gives no privacy and takes no epsilon; remove epsilon or choose a mechanism",
        ),
        (
            {"mechanism": mechanism("rappor", epsilon=1.0)},
            "mechanism: rappor needs theta (sue and oue are rappor with a theta of their own)",
        ),
        (
            {"mechanism": mechanism("oue", epsilon=1.0, theta=0.4)},
            "mechanism: oue takes no theta; only rappor, urap do",
        ),
        (
            {"mechanism": mechanism("rappor", epsilon=1.0, theta=1)},
            "mechanism.theta: Input should be less than 1 (got 1.0)",
        ),
        (
            {"mechanism": mechanism("rr", epsilon=1), "sensitive": [1]},
            "rr protects every value alike; write sensitive: all, or choose one of urr, urap, uoue",
        ),
        (
            {"mechanism": mechanism("warner", epsilon=1)},
            "domain: warner is for two values, got 5; use rr or urr",
        ),
        (
            {"mechanism": mechanism("mangat", epsilon=1), "domain": {"size": 2}},
            "mangat needs its one sensitive value: sensitive: [1]",
        ),
        (
            {"mechanism": mechanism("mangat", epsilon=1), "domain": {"size": 2}, "sensitive": [0, 1]},
            "sensitive: mangat has exactly one sensitive value",
        ),
        (
            {"mechanism": mechanism("oue", epsilon=1), "tags": [{"name": "home"}]},
            "tags need one of urr, urap, uoue as the common mechanism, not oue",
        ),
        (
            {"tags": [{"name": "a b"}]},
            "tags.0.name: String should match pattern '^[A-Za-z0-9_-]{1,64}$' (got 'a b')",
        ),
        ({"tags": {"name": "a"}}, "tags: Input should be a valid list"),
        ({"tags": [{"name": "a"}, {"name": "a"}]}, "tag names must differ, got ['a', 'a']"),
        ({"tags": [{"name": "home"}]}, f"tags.0: home {SPREAD}"),
        ({"window": {"size": 3600}}, f"window.size: {DURATION} (got 3600)"),
        ({"window": {"size": "1 h"}}, f"window.size: {DURATION} (got '1 h')"),
        ({"window": {"size": "1.5h"}}, f"window.size: {DURATION} (got '1.5h')"),
        ({"window": {"size": "-1h"}}, f"window.size: {DURATION} (got '-1h')"),
        ({"window": {"size": "0s"}}, "window: size must be more than 0"),
        (
            {"window": {"size": "1h", "period": "7m"}},
            "window: size must be a multiple of period, which 7m does not divide",
        ),
        (
            {"window": {"size": "1h", "period": "0s"}},
            "window: size must be a multiple of period, which 0d does not divide",
        ),
        (
            {"window": {"size": "1h", "early_every": "500ms"}},
            "window: early_every must be one or more whole seconds; leave it out for no early panes",
        ),
        (
            {"window": {"size": "1h", "early_every": "0s"}},
            "window: early_every must be one or more whole seconds; leave it out for no early panes",
        ),
        ({"estimator": "mean"}, f"estimator: {ESTIMATOR} (got 'mean')"),
        ({"estimator": ["mle", "mean"]}, f"estimator.1: {ESTIMATOR} (got 'mean')"),
        ({"estimator": []}, f"estimator: {ESTIMATOR} (got [])"),
        ({"estimator": ["mle", "mle"]}, "estimators must differ, got ['mle', 'mle']"),
        (
            {"estimator": ["empirical", "mle", "em"], "mechanism": mechanism("oue", epsilon=1)},
            "estimator em needs the reports themselves under oue; use norm-sub in a pipeline",
        ),
        ({"limits": {"min_reports": 0}}, "limits.min_reports: Input should be greater than or equal to 1 (got 0)"),
        (
            {"limits": {"max_rejected_ratio": 1.5}},
            "limits.max_rejected_ratio: Input should be less than or equal to 1 (got 1.5)",
        ),
        ({"limits": {"max_clock_skew": 600}}, f"limits.max_clock_skew: {DURATION} (got 600)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_mistake_is_one_line_of_file_key_value_and_remedy(keys: dict[str, Any], text: str) -> None:
    assert message(**keys) == f"spec.yaml: {text}"


def test_several_mistakes_are_a_line_each() -> None:
    assert message(version=0, typo=1, limits={"min_reports": "x"}).splitlines() == [
        "spec.yaml: version: Input should be greater than or equal to 1 (got 0)",
        "spec.yaml: limits.min_reports: Input should be a valid integer (got 'x')",
        f"spec.yaml: typo: {UNKNOWN_KEY}",
    ]


@pytest.mark.parametrize("key", MINIMAL)
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(SpecError, match=rf"^spec\.yaml: {key}: missing; add it$"):
        CollectionSpec.parse({name: value for name, value in MINIMAL.items() if name != key}, source="spec.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping with the key collection, got NoneType"),
        ("- a\n", "must be a mapping with the key collection, got list"),
        ("1: 2\n", "1: unknown key; check the spelling or remove it"),
        ("a: 1\nb: 2\na: 3\n", "not YAML: key 'a' stands twice"),
        ("domain: {size: 2, size: 3}\n", "not YAML: key 'size' stands twice"),
        ("a: [1\n", "not YAML: while parsing a flow sequence"),
        ("a: *b\n", "not YAML: found undefined alias 'b'"),
        ("? [a]\n: 1\n", "not YAML: unhashable type: 'list'"),
        ("version: 2026-02-30\n", "not YAML: day is out of range for month"),
        ("a: !!python/name:os.system\n", "not YAML: could not determine a constructor for the tag"),
    ],
)
def test_a_file_that_is_no_spec_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        CollectionSpec.load(path)
    assert f"{path}: {message}" in str(caught.value)
    assert all(line.startswith(f"{path}: ") for line in str(caught.value).splitlines())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/no\.yaml: No such file or directory; check"):
        CollectionSpec.load(tmp_path / "no.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"collection: caf\xe9\n")
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/latin\.yaml: not UTF-8 text; is this a spec\?$"):
        CollectionSpec.load(tmp_path / "latin.yaml")


@given(st.text(st.sampled_from("ab:[]{}-&*!?<>|,\"'# \n01."), max_size=30))
def test_any_text_is_a_spec_or_a_spec_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text)
    with pytest.raises(SpecError):  # no text this short is a spec
        CollectionSpec.load(path)


def test_values_are_named_by_label_where_there_are_labels() -> None:
    spec = parse(domain={"labels": ["home", "work", "gym"]}, sensitive=["gym", 0])
    assert spec.size == 3
    assert spec.labels == ["home", "work", "gym"]
    assert spec.sensitive_mask.tolist() == [True, False, True]
    assert [spec.index(label) for label in spec.labels] == [0, 1, 2]
    assert spec.index(1) == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels.csv").write_text('home,ignored\n\n"a, b"\ngym\n')
    return tmp_path


def test_labels_file_is_the_first_column_of_a_csv(folder: Path) -> None:
    spec = CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}, "sensitive": ["a, b"]}, base=folder)
    assert spec.labels == ["home", "a, b", "gym"]
    assert spec.size == 3
    assert spec.sensitive_mask.tolist() == [False, True, False]


@pytest.mark.parametrize("content", ["", "home\n", "home\nwork\nhome\n"])
def test_labels_file_needs_two_different_labels(folder: Path, content: str) -> None:
    (folder / "labels.csv").write_text(content)
    with pytest.raises(
        SpecError, match=r"^spec: domain\.labels_file: labels\.csv: needs two or more different labels$"
    ):
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)


def test_labels_file_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"^spec: domain\.labels_file: cannot read .*no\.csv: .*No such file"):
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "no.csv"}}, base=folder)


def background_of(folder: Path, content: str, **keys: Any) -> Any:
    (folder / "home.csv").write_text(content)
    tags = [{"name": "home", "background": "home.csv"}]
    return CollectionSpec.parse(MINIMAL | {"sensitive": [0], "tags": tags} | keys, base=folder).background


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("value,weight\n1,1\n4,3\n", {}),
        ("1,0.25\n4,0.75\n", {}),
        ("4,2\n1,1\n4,1\n2,0\n", {}),
        ("b,1\ne,3\n", {"domain": {"labels": list("abcde")}}),
    ],
    ids=["header", "no header", "repeated", "labels"],
)
def test_background_is_the_weights_made_a_distribution(folder: Path, content: str, keys: dict[str, Any]) -> None:
    assert background_of(folder, content, **keys).tolist() == [[0, 0.25, 0, 0, 0.75]]


def test_numbers_are_labels_where_there_are_labels(folder: Path) -> None:
    domain = {"labels": ["4", "3", "2", "1", "0"]}
    assert background_of(folder, "4,1\n", domain=domain).tolist() == [[1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "no weight at all; give at least one value a weight above 0"),
        ("1,0\n", "no weight at all; give at least one value a weight above 0"),
        ("value,weight\n1,-1\n", "line 2: weight -1 must be a finite number of 0 or more"),
        ("1,inf\n", "line 1: weight inf must be a finite number of 0 or more"),
        ("1,nan\n", "line 1: weight nan must be a finite number of 0 or more"),
        ("1,1\n5,1\n", "line 2: '5,1': 5 is outside of the domain 0 to 4; write value,weight"),
        (
            "1,1\nvalue,weight\n",
            "line 2: 'value,weight': could not convert string to float: 'weight'; write value,weight",
        ),
        ("1,x\n", "line 1: '1,x': could not convert string to float: 'x'; write value,weight"),
        ("a,1\n", "line 1: 'a,1': 'a' is a label, but the domain has only a size; write value,weight"),
        ("1\n", "line 1: '1': not enough values to unpack (expected 2, got 1); write value,weight"),
    ],
)
def test_background_that_says_nothing_is_an_error(folder: Path, content: str, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        background_of(folder, content)
    assert str(caught.value) == f"spec: tags.0.background: home.csv: {text}"


@given(st.integers(0, 999_999_999), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_durations_round_trip(number: int, unit: str) -> None:
    duration = parse_duration(f"{number}{unit}")
    assert parse_duration(format_duration(duration)) == duration
    assert milliseconds(duration) == number * {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[unit]


@given(st.integers(1, 10**9), st.sampled_from(["ms", "s", "m", "h", "d"]))
def test_a_duration_is_written_in_the_largest_unit_that_divides_it(number: int, unit: str) -> None:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", format_duration(timedelta(milliseconds=number)))
    assert match is not None
    larger = {"ms": 1000, "s": 60, "m": 60, "h": 24}.get(match[2])
    assert larger is None or int(match[1]) % larger


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1w", "1H", "1e3s", "1h30m", " 1h", "1h ", "+1h", "1000000000s", 60, None]
)
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(ValueError, match=r"^write a duration as a whole number and a unit"):
        parse_duration(text)


def test_a_sliding_window_moves_by_its_period() -> None:
    window = WindowSpec.model_validate({"size": "1h", "period": "10m"})
    assert (window.size, window.period) == (timedelta(hours=1), timedelta(minutes=10))


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse().version = 2  # type: ignore[misc]
