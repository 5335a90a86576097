"""The collection spec: what it accepts, and the one line that it says of each mistake."""

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.collection import CollectionSpec, WindowSpec
from uldp.schemas.durations import format_duration, milliseconds, parse_duration
from uldp.schemas.specfile import SpecError

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
    assert spec.max_age == timedelta(days=365)


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
SMALL_NAME = "must be 1 to 64 of the characters a-z, 0-9 and -"
LABEL_READ = "must be text (YAML reads this as"
QUOTES = "if it is a label, write it in quotes"
ONE_DOMAIN = "give one of size, labels, labels_file"
SPREAD = "without background is spread over the non-sensitive values, and there are none; give it a background"
TWO_LABELS = {"labels": ["a", "b"]}


def mechanism(name: str, **parameters: Any) -> dict[str, Any]:
    return {"name": name, **parameters}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"colection": "c"}, f"colection: {UNKNOWN_KEY} (did you mean 'collection'?)"),
        ({"int": 1}, f"int: {UNKNOWN_KEY}"),
        ({"limits": {"min[reports]": 1}}, f"limits.min[reports]: {UNKNOWN_KEY} (did you mean 'min_reports'?)"),
        ({"limits": {"max_agee": "1d"}}, f"limits.max_agee: {UNKNOWN_KEY} (did you mean 'max_age'?)"),
        ({"window": {"size": "1h", "Period": "1h"}}, f"window.Period: {UNKNOWN_KEY} (did you mean 'period'?)"),
        ({"tags": [{"name": "a", "nmae": "b"}]}, f"tags.0.nmae: {UNKNOWN_KEY} (did you mean 'name'?)"),
        ({"\x1b[31m": 1}, f"'\\x1b[31m': {UNKNOWN_KEY}"),
        ({"k" * 1000: 1}, f"'{'k' * 37}...{'k' * 38}': {UNKNOWN_KEY}"),
        (
            {"window": {"size": "1h", "lateness": "1h"}},
            f"window.lateness: {UNKNOWN_KEY} (did you mean 'allowed_lateness'?)",
        ),
        ({"window": {}}, "window.size: missing; add it"),
        ({"mechanism": {"epsilon": 1.0}}, "mechanism.name: missing; add it"),
        ({"collection": "C"}, f"collection: {SMALL_NAME} (got 'C')"),
        ({"collection": "c\n"}, f"collection: {SMALL_NAME} (got 'c\\n')"),
        ({"collection": 7}, "collection: must be text (YAML reads this as the number 7; write it in quotes)"),
        ({"version": 0}, "version: must be 1 or more (got 0)"),
        ({"version": 1 << 31}, f"version: must be less than 2,147,483,648 (got {1 << 31})"),
        ({"version": "1"}, "version: must be a whole number (got '1')"),
        ({"version": True}, "version: must be a whole number (got true)"),
        ({"domain": {"size": 1}}, "domain.size: must be 2 or more (got 1)"),
        (
            {"domain": {"size": (1 << 24) + 1}},
            "domain.size: must be 16,777,216 or less (got 16777217)",
        ),
        ({"domain": {}}, f"domain: {ONE_DOMAIN} (given: none)"),
        ({"domain": {"size": 2, **TWO_LABELS}}, f"domain: {ONE_DOMAIN} (given: size, labels)"),
        ({"domain": {"labels": ["a", "b", "a"]}}, "domain: label 'a' stands twice; labels must differ"),
        ({"domain": {"labels": ["yes", True]}}, f"domain.labels.1: {LABEL_READ} true; write it in quotes)"),
        ({"domain": {"labels": ["a", False]}}, f"domain.labels.1: {LABEL_READ} false; write it in quotes)"),
        ({"domain": {"labels": ["a", 1]}}, f"domain.labels.1: {LABEL_READ} the number 1; write it in quotes)"),
        ({"domain": {"labels": ["a", 1.5]}}, f"domain.labels.1: {LABEL_READ} the number 1.5; write it in quotes)"),
        ({"domain": {"labels": ["a", None]}}, f"domain.labels.1: {LABEL_READ} nothing; write it in quotes)"),
        (
            {"domain": {"labels": [date(2026, 1, 5), "b"]}},
            f"domain.labels.0: {LABEL_READ} the date 2026-01-05; write it in quotes)",
        ),
        ({"domain": {"labels": ["a", ["b"]]}}, "domain.labels.1: must be text"),
        ({"domain": {"labels": ["a"]}}, "domain.labels: must have 2 entries or more"),
        ({"domain": {"labels": ["\x1b[2J"] * 2}}, "domain: label '\\x1b[2J' stands twice; labels must differ"),
        ({"sensitive": 5}, f"sensitive: {SENSITIVE} (got 5)"),
        ({"sensitive": "everything"}, f"sensitive: {SENSITIVE} (got 'everything')"),
        ({"sensitive": [1, 1.5]}, f"sensitive.1: {SENSITIVE} (YAML reads this as the number 1.5; {QUOTES})"),
        (
            {"sensitive": ["b", True], "domain": TWO_LABELS},
            f"sensitive.1: {SENSITIVE} (YAML reads this as true; {QUOTES})",
        ),
        ({"sensitive": [None]}, f"sensitive.0: {SENSITIVE} (YAML reads this as nothing; {QUOTES})"),
        ({"sensitive": "al"}, f"sensitive: {SENSITIVE} (got 'al'; did you mean 'all'?)"),
        (
            {"sensitive": [1], "domain": {"labels": ["1", "2"]}},
            "sensitive: 1 is the number of a value and the label of another; for the label, write it in quotes: '1'",
        ),
        (
            {"sensitive": ["of\x07ten"], "domain": {"labels": ["often", "never"]}},
            "sensitive: 'of\\x07ten' is no label of the domain (did you mean 'often'?)",
        ),
        ({"sensitive": []}, "sensitive: empty; name the sensitive values, or choose the mechanism identity"),
        ({"sensitive": [5]}, "sensitive: 5 is outside of the domain 0 to 4"),
        ({"sensitive": [-1]}, "sensitive: -1 is outside of the domain 0 to 4"),
        ({"sensitive": [3, 1, 3]}, "sensitive: 3 stands twice; remove one"),
        ({"sensitive": ["a"]}, "sensitive: 'a' is a label, but the domain has only a size"),
        ({"sensitive": ["c"], "domain": TWO_LABELS}, "sensitive: 'c' is no label of the domain"),
        (
            {"mechanism": mechanism("olh", epsilon=1)},
            f"mechanism.name: must be one of {MECHANISMS} (got 'olh')",
        ),
        (
            {"mechanism": mechanism("uRR", epsilon=1)},
            f"mechanism.name: must be one of {MECHANISMS} (got 'uRR'; did you mean 'urr'?)",
        ),
        ({"version": 16**5000}, "version: must be less than 2,147,483,648 (got a number of thousands of digits)"),
        ({"mechanism": "urr"}, "mechanism: must be a mapping (got 'urr')"),
        ({"mechanism": mechanism("urr")}, "mechanism: urr needs epsilon, for example epsilon: 1.0"),
        (
            {"mechanism": mechanism("urr", epsilon=0)},
            "mechanism.epsilon: must be more than 0 (got 0.0)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon=51)},
            "mechanism.epsilon: must be 50 or less (got 51.0)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon=float("nan"))},
            "mechanism.epsilon: must be 50 or less (got nan)",
        ),
        (
            {"mechanism": mechanism("urr", epsilon="1.0")},
            "mechanism.epsilon: must be a number (got '1.0')",
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
            "mechanism.theta: must be less than 1 (got 1.0)",
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
            "tags.0.name: must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and - (got 'a b')",
        ),
        ({"tags": {"name": "a"}}, "tags: must be a list"),
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
        ({"estimator": "norm_sub"}, f"estimator: {ESTIMATOR} (got 'norm_sub'; did you mean 'norm-sub'?)"),
        ({"estimator": ["thresold"]}, f"estimator.0: {ESTIMATOR} (got 'thresold'; did you mean 'threshold'?)"),
        ({"estimator": [1]}, f"estimator.0: {ESTIMATOR} (got 1)"),
        ({"estimator": []}, f"estimator: {ESTIMATOR} (got [])"),
        ({"estimator": ["mle", "mle"]}, "estimators must differ, got ['mle', 'mle']"),
        (
            {"estimator": ["empirical", "mle", "em"], "mechanism": mechanism("oue", epsilon=1)},
            "estimator em needs the reports themselves under oue; use norm-sub in a pipeline",
        ),
        ({"limits": {"min_reports": 0}}, "limits.min_reports: must be 1 or more (got 0)"),
        (
            {"limits": {"max_rejected_ratio": 1.5}},
            "limits.max_rejected_ratio: must be 1 or less (got 1.5)",
        ),
        ({"limits": {"max_clock_skew": 600}}, f"limits.max_clock_skew: {DURATION} (got 600)"),
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


NOT_HERE = "where none can be; write the value in quotes, or check the indentation and the line before"
OPEN = "here and not closed"
NO_NUMBER = "looks like a number or a date and is none; write it in quotes"
NO_TAG = "a tag that begins with an exclamation mark; write the value in quotes"


@pytest.mark.parametrize("key", MINIMAL)
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(SpecError, match=rf"^spec\.yaml: {key}: missing; add it$"):
        CollectionSpec.parse({name: value for name, value in MINIMAL.items() if name != key}, source="spec.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping with the key collection (got nothing); is this a spec?"),
        ("- a\n", "must be a mapping with the key collection (got a list); is this a spec?"),
        ("value,tag\n", "must be a mapping with the key collection (got 'value,tag'); is this a spec?"),
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' stands twice; remove one"),
        ("b: 1\ndomain: {size: 2,\n  size: 3}\n", "line 3: key 'size' stands twice; remove one"),
        ('"\\e[2J": 1\n"\\e[2J": 1\n', "line 2: key '\\x1b[2J' stands twice; remove one"),
        ("b: 1\na: [1\nc: 2\n", f"line 2: not YAML: a bracket is opened {OPEN}, or a comma is missing in it"),
        ("b: 1\na: 'x\n\n", f"line 2: not YAML: a quote is opened {OPEN}"),
        ("b: 1\na: *b\n", "line 2: not YAML: a value that begins with an asterisk; write it in quotes"),
        ("b: 1\na: @b\n", "line 2: not YAML: a character that begins no value; write the value in quotes"),
        ("b:\n\t- a\n", "line 2: not YAML: a tab; indent with spaces"),
        ("b: 1\na\nc: 1\n", "line 2: not YAML: a key without a colon after it"),
        (
            "b: 1\n c: 2\n",
            f"line 2: not YAML: a colon {NOT_HERE}",
        ),
        ("- a\nb: 1\n", "line 2: not YAML: a line that is not indented as the others are"),
        ("b: |x\n", "line 1: not YAML: expected chomping or indentation indicators, but found 'x'"),
        ("b: 1\n? [a]\n: 1\n", "line 2: a list or a mapping as a key; a key is a word"),
        ("b: &a [*a]\n", "line 1: a value that holds itself; write it out"),
        ("b: 1\nversion: 2026-02-30\n", f"line 2: '2026-02-30' {NO_NUMBER}"),
        ("version: !!int x\n", f"line 1: 'x' {NO_NUMBER}"),
        (f"version: {'1' * 5000}\n", f"line 1: '{'1' * 37}...{'1' * 38}' {NO_NUMBER}"),
        ("b: !!python/name:os.system\n", f"line 1: {NO_TAG}"),
        ("b: !!binary é\n", f"line 1: {NO_TAG}"),
        ("b: 1\nc: \x1b[2J\n", "line 2: a character that no text has, '\\x1b'"),
        ("[" * 5000, "brackets or lists too deep in one another; is this a spec?"),
        ("a\0", "not a text file; is this the right file?"),
    ],
    ids=lambda value: value[:20],
)
def test_a_file_that_is_no_spec_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        CollectionSpec.load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_a_key_may_be_no_text(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("1: 2\n")
    with pytest.raises(SpecError, match=rf"spec\.yaml: 1: {UNKNOWN_KEY}$"):
        CollectionSpec.load(tmp_path / "spec.yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/no\.yaml: No such file or directory; check"):
        CollectionSpec.load(tmp_path / "no.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"collection: caf\xe9\n")
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}/latin\.yaml: not UTF-8 text; is this the right"):
        CollectionSpec.load(tmp_path / "latin.yaml")
    with pytest.raises(SpecError, match=rf"^{re.escape(str(tmp_path))}: Is a directory; check the path$"):
        CollectionSpec.load(tmp_path)
    with pytest.raises(SpecError, match=r"^/dev/zero: more than 16,777,216 bytes; is this the right file\?$"):
        CollectionSpec.load("/dev/zero")


def test_a_spec_may_begin_with_a_byte_order_mark(sample: Path) -> None:
    sample.write_text(SAMPLE, encoding="utf-8-sig")
    assert CollectionSpec.load(sample).key == ("manhattan-checkins", 1)


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


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "needs two or more labels, has 0"),
        ("home\n", "needs two or more labels, has 1"),
        ("home\nwork\nhome\n", "label 'home' stands twice; labels must differ"),
        ("\x1b[2J\n\x1b[2J\n", "label '\\x1b[2J' stands twice; labels must differ"),
        (f'home\n"{"x" * 200_000}\n', "line 2: a field of more than 131,072 characters; is a quote not closed?"),
        ("home\0\nwork\n", "not a text file; is this the right file?"),
    ],
    ids=["empty", "one", "repeated", "escaped", "open quote", "binary"],
)
def test_labels_file_needs_two_different_labels(folder: Path, content: str, text: str) -> None:
    (folder / "labels.csv").write_text(content)
    with pytest.raises(SpecError) as caught:
        CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)
    assert str(caught.value) == f"spec: domain.labels_file: {folder}/labels.csv: {text}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no.csv", "/no.csv: No such file or directory; check the path"),
        (".", ": Is a directory; check the path"),
        ("no\0.csv", "/no\\x00.csv': no file has such a name; check the path"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_once(folder: Path, name: str, text: str) -> None:
    named: dict[str, dict[str, Any]] = {
        "domain.labels_file": {"domain": {"labels_file": name}},
        "tags.0.background": {"sensitive": [0], "tags": [{"name": "home", "background": name}]},
    }
    for key, keys in named.items():
        with pytest.raises(SpecError) as caught:
            CollectionSpec.parse(MINIMAL | keys, base=folder)
        assert str(caught.value).replace("'/", "/") == f"spec: {key}: {folder}{text}"


def test_a_byte_order_mark_is_no_part_of_a_label(folder: Path) -> None:
    (folder / "labels.csv").write_text("home\nwork\n", encoding="utf-8-sig")
    spec = CollectionSpec.parse(MINIMAL | {"domain": {"labels_file": "labels.csv"}}, base=folder)
    assert spec.labels == ["home", "work"]


WEIGHT = "must be a finite number of 0 or more"
LONG = f"'{'1' * 37}...{'1' * 36}"


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
    assert background_of(folder, "4,1\n", domain=domain, sensitive=["4"]).tolist() == [[1, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "the weights sum to 0; give at least one value a weight above 0"),
        ("1,0\n", "the weights sum to 0; give at least one value a weight above 0"),
        ("1,1e308\n2,1e308\n", "the weights sum to inf; give at least one value a weight above 0"),
        ("value,weight\n\n1,-1\n", f"line 3: '1,-1': weight '-1' {WEIGHT}"),
        ("1,inf\n", f"line 1: '1,inf': weight 'inf' {WEIGHT}"),
        ("1,nan\n", f"line 1: '1,nan': weight 'nan' {WEIGHT}"),
        ("1,1\n5,1\n", "line 2: '5,1': 5 is outside of the domain 0 to 4"),
        ("1,1\nvalue,weight\n", "line 2: 'value,weight': 'value' is a label, but the domain has only a size"),
        ("1,x\n", f"line 1: '1,x': weight 'x' {WEIGHT}"),
        ("1,\x1b[2J\n", f"line 1: '1,\\x1b[2J': weight '\\x1b[2J' {WEIGHT}"),
        ("a,1\n", "line 1: 'a,1': 'a' is a label, but the domain has only a size"),
        ("1\n", "line 1: '1': 1 fields; write value,weight"),
        (f"{'1' * 5000},1\n", f"line 1: {LONG},1': {LONG}11' is a label, but the domain has only a size"),
    ],
    ids=lambda text: text[:20],
)
def test_background_that_says_nothing_is_an_error(folder: Path, content: str, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        background_of(folder, content)
    assert str(caught.value) == f"spec: tags.0.background: {folder}/home.csv: {text}"


def test_a_label_that_is_nearly_right_is_suggested(folder: Path) -> None:
    domain = {"labels": ["never", "once", "often"]}
    with pytest.raises(
        SpecError, match=r"line 2: 'Oftn,1': 'Oftn' is no label of the domain \(did you mean 'often'\?\)$"
    ):
        background_of(folder, "never,1\nOftn,1\n", domain=domain)


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


@pytest.mark.parametrize(
    ("window", "limits", "days"),
    [
        ({"size": "1h"}, {}, 365),
        ({"size": "1h"}, {"max_age": "7d"}, 7),
        ({"size": "1h"}, {"max_age": "36500d"}, 36_500),
        ({"size": "300d", "allowed_lateness": "65d"}, {}, 365),
        ({"size": "300d", "allowed_lateness": "66d"}, {}, 366),
    ],
)
def test_a_report_may_be_a_year_old_but_never_less_than_a_window_counts(
    window: dict[str, str], limits: dict[str, str], days: int
) -> None:
    assert parse(window=window, limits=limits).max_age == timedelta(days=days)


def test_a_sliding_window_moves_by_its_period() -> None:
    window = WindowSpec.model_validate({"size": "1h", "period": "10m"})
    assert (window.size, window.period) == (timedelta(hours=1), timedelta(minutes=10))


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse().version = 2  # type: ignore[misc]
