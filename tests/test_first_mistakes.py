"""The first mistakes of who embeds this project in a program: each gets one line, which names the remedy."""

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage

from tests import build
from tests.build import START
from uldp.mechanisms import Device, FileLedger
from uldp.schemas import CollectionSpec, Message
from uldp.transforms import Aggregate, ParseMessages

SURVEY = build.spec(
    domain={"labels": ["never", "once", "often"]}, sensitive=["often"], tags=[{"name": "home"}], estimator="mle"
)
NUMBER = build.spec(domain={"number": {"low": 0, "high": 24}}, mechanism={"name": "duchi", "epsilon": 1.0})
WORDS = build.spec(
    domain={"strings": {"longest": 8}}, mechanism={"name": "cohort-olh", "epsilon": 1.0}, candidates=["a", "b"]
)
RECORD = build.spec(
    domain={"record": {"app": {"labels": ["a", "b"]}, "hours": {"number": {"low": 0, "high": 24}}}},
    mechanism={"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "hours": {"name": "duchi"}}},
)
BODY = Device(SURVEY, {}).report(1, START)
KEYS = {"collection": "c", "version": 1}
wrong: Any = lambda value: value  # noqa: E731 (hides types that mypy would refuse)

SPECS: dict[str, tuple[Callable[[], object], str]] = {
    "a path for a spec": (lambda: wrong(CollectionSpec)("survey.yaml"), r"CollectionSpec\.load\(PATH\)"),
    "a path to parse": (lambda: CollectionSpec.parse(Path("survey.yaml")), r"CollectionSpec\.load\(PATH\)"),
    "a text to parse": (lambda: CollectionSpec.parse("survey.yaml"), r"CollectionSpec\.load\(PATH\)"),
    "a mapping to load": (lambda: CollectionSpec.load(wrong(KEYS)), r"is a dict, not a str; parse takes a mapping"),
    "a spec to load": (lambda: CollectionSpec.load(wrong(SURVEY)), r"is a CollectionSpec, not a str"),
    "no file": (lambda: CollectionSpec.load("nowhere.yaml"), r"nowhere\.yaml: No such file or directory; check"),
    "one spec": (lambda: Aggregate(wrong(SURVEY)), r"specs is one spec, and not a list of them; write \[spec\]"),
    "a path for specs": (lambda: Aggregate(wrong("survey.yaml")), r"a spec is a str, .*CollectionSpec\.load\(PATH\)"),
    "a mapping for specs": (lambda: Aggregate(wrong(KEYS)), r"a spec is a dict, .*CollectionSpec\.parse\(KEYS\)"),
    "no spec": (lambda: Aggregate([]), r"no spec is given; give at least one"),
    "a spec twice": (lambda: Aggregate([SURVEY, SURVEY]), r"raise the version of one"),
    "a text of shards": (lambda: Aggregate([SURVEY], shards=wrong("4")), r"shards must be a whole number of 1 or more"),
    "bytes as shard key": (lambda: Aggregate([SURVEY], shard_key=wrong(b"key")), r"the shard key must be an integer"),
}
DEVICES: dict[str, tuple[Callable[[], object], str]] = {
    "a path for a spec": (lambda: Device(wrong("survey.yaml"), {}), r"a spec is a str, .*CollectionSpec\.load\(PATH\)"),
    "hidden is None": (lambda: Device(SURVEY, wrong(None)), r"hidden is a NoneType, .*; \{\} hides none"),
    "hidden is a list": (lambda: Device(SURVEY, wrong([1])), r"hidden is a list, not a mapping of values to tags"),
    "a hidden label": (lambda: Device(SURVEY, wrong({"often": "home"})), r"spec\.variables\[''\]\.index\(label\)"),
    "an unknown tag": (lambda: Device(SURVEY, {1: "work"}), r"not in the spec, whose tags are \['home'\]"),
    "hidden outside": (lambda: Device(SURVEY, {3: "home"}), r"a hidden value is outside of the domain 0 to 2"),
    "a hidden number": (lambda: Device(NUMBER, {3: "home"}), r"the domain has none: it is of numbers or of strings"),
    "no ledger": (lambda: FileLedger(wrong(None)), r"the path of a ledger is a NoneType, .*FileLedger\(PATH\)"),
    "a folder as ledger": (lambda: FileLedger("tests"), r"tests: Is a directory; name a file"),
    "a seed": (lambda: Device(SURVEY, {}, wrong(1)), r"randomness is a seed; numpy\.random\.default_rng\(seed\)"),
}
VALUES: dict[str, tuple[CollectionSpec, Any, str]] = {
    "a label": (SURVEY, "often", r"is a str, not an int: its index, 0 to 2; spec\.variables\[''\]\.index\(label\)"),
    "a float": (SURVEY, 1.0, r"is a float, not an int: its index, 0 to 2"),
    "nothing": (SURVEY, None, r"is a NoneType, not an int"),
    "outside": (SURVEY, 3, r"outside of the domain 0 to 2"),
    "a label for a number": (NUMBER, "often", r"is a str, not a number"),
    "a number for a string": (WORDS, 3, r"is a int, not a string"),
    "a value for a record": (RECORD, 1, r"is a int, not a mapping with \['app', 'hours'\]"),
    "half a record": (RECORD, {"app": 1}, r"a record needs a value for each of \['app', 'hours'\]"),
    "a label in a record": (RECORD, {"app": "a", "hours": 1}, r"spec\.variables\['app'\]\.index\(label\)"),
}
MILLISECONDS = r" is a \w+, not an int of milliseconds .* write int\(time\.time\(\) \* 1000\)"
TIMES: dict[str, Any] = {
    "float": START / 1000,
    "naive": datetime.now(),
    "text": "2026-01-01T09:00:00Z",
    "nothing": None,
}
OTHERS: dict[str, Any] = {
    "bytes": BODY,
    "text": "report",
    "dict": {"data": BODY},
    "row": beam.Row(data=BODY),
    "pubsub": PubsubMessage(BODY, {}),
    "kafka": (b"key", BODY),
    "pair": (BODY, START),
    "list": [Message(BODY, START)],
    "nothing": None,
}


def line_of(mistake: Callable[[], object]) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        mistake()
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize("name", SPECS)
def test_specs(name: str) -> None:
    mistake, remedy = SPECS[name]
    assert_has(remedy, line_of(mistake))


@pytest.mark.parametrize("name", DEVICES)
def test_devices(name: str) -> None:
    mistake, remedy = DEVICES[name]
    assert_has(remedy, line_of(mistake))


@pytest.mark.parametrize("name", VALUES)
def test_values_which_no_error_shows(name: str) -> None:
    spec, value, remedy = VALUES[name]
    line = line_of(lambda: Device(spec, {}).report(value, START))
    assert_has(remedy, line)
    assert not isinstance(value, str) or value not in line.replace("a str", "")


@pytest.mark.parametrize("name", TIMES)
def test_times_of_observations_and_of_messages(name: str) -> None:
    wrong_time = TIMES[name]
    assert_has("^event_time_ms" + MILLISECONDS, line_of(lambda: Device(SURVEY, {}).report(1, wrong_time)))
    run = aggregate([Message(BODY, wrong_time)])
    assert_has("publish_time" + MILLISECONDS, line_of(run))


@pytest.mark.parametrize(
    "data", ["report", None, bytearray(BODY), memoryview(BODY), 7], ids=lambda data: type(data).__name__
)
def test_bodies_of_messages(data: Any) -> None:
    assert_has(
        r"the data of a message is a \w+, not bytes: give the bytes that", line_of(aggregate([Message(data, START)]))
    )


@pytest.mark.parametrize("attributes", [{"a": b"b"}, {"uldp-attempt": 3}, {1: "a"}], ids=str)
def test_attributes_of_messages(attributes: Any) -> None:
    line = line_of(aggregate([Message(BODY, START, attributes)]))
    assert_has(r"an attribute of a message has a \w+, not a str: write its name and value as text", line)


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("known", [True, False])
def test_elements_that_are_no_messages(name: str, known: bool) -> None:
    between = [] if known else [beam.Map(lambda each: each).with_output_types(Any)]
    line = line_of(aggregate([OTHERS[name]], *between))
    assert_has(r"Aggregate takes uldp\.schemas\.Message, not .*; put uldp\.transforms\.ParseMessages\(\) before", line)


@pytest.mark.parametrize("name", ["text", "dict", "list", "pair", "nothing"])
def test_elements_that_cannot_be_parsed(name: str) -> None:
    line = line_of(aggregate([OTHERS[name]], ParseMessages()))
    assert_has(r"ParseMessages takes bytes, .* map it to one of these|the data of a message is a \w+, not bytes", line)


@pytest.mark.parametrize("name", ["bytes", "row", "pubsub", "kafka"])
def test_elements_without_a_time(name: str) -> None:
    line = line_of(aggregate([OTHERS[name]], ParseMessages()))
    assert_has(r"no publish time, .* beam\.window\.TimestampedValue\(element, seconds\), or rows a publish_time", line)


def aggregate(elements: list[Any], *between: beam.PTransform[Any, Any]) -> Callable[[], None]:
    def run() -> None:
        with beam.Pipeline("FnApiRunner") as pipeline:
            given = pipeline | beam.Create(elements)
            for step in between:
                given |= step
            _ = given | Aggregate([SURVEY])

    return run


def assert_has(pattern: str, line: str) -> None:
    assert re.search(pattern, line), line
