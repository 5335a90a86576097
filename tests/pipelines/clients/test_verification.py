"""uldp verify: an archive of a client's reports of one value, against the spec."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from tests.pipelines.command import Run
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.protocol.mechanism import WithMemory
from uldp.pipelines.clients.verification import LEVEL, Given, verify
from uldp.schemas.records import SENDER, Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

TAGS = {"domain": {"labels": ["park", "shop", "clinic"]}, "sensitive": ["clinic"], "tags": [{"name": "home"}]}
RECORD = {
    "domain": {"record": {"app": {"size": 4}, "hours": {"number": {"low": 0, "high": 24}}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "olh"}, "hours": {"name": "duchi"}}},
}


def archive(
    folder: Path, spec: CollectionSpec, value: Any, hidden: Any = None, n: int = 1000, level: str | None = None
) -> str:
    """Reports of one value by a right client whose randomness has a seed."""
    device = Device(spec, {} if hidden is None else hidden, default_rng(4), level=level)
    return stream(folder, [device.report(value, build.START) for _ in range(n)])


def of_devices(folder: Path, spec: CollectionSpec, value: int, kept: Sequence[int]) -> str:
    """Reports of 1,000 devices that all hold one value: in each window by the kept response with this number."""
    mechanism, rng, reports = build_protocol(spec).mechanism, default_rng([5, value]), []
    assert isinstance(mechanism, WithMemory)
    responses = [mechanism.permanent(np.full(1000, value), rng) for _ in range(max(kept) + 1)]
    for window, number in enumerate(kept):
        for device, payload in enumerate(mechanism.again(responses[number], rng).tolist()):
            report = build.report(1000 * window + device, payload).encode()
            reports.append(Message(report, build.START, {SENDER: f"device {device}"}))
    LocalStream.create(folder).append(reports)
    return str(folder)


def stream(folder: Path, messages: Sequence[bytes]) -> str:
    LocalStream.create(folder / "stream").append([Message(data, build.START) for data in messages])
    return str(folder / "stream")


STRINGS: dict[str, Any] = {"domain": {"strings": {"longest": 8}}, "candidates": ["kiosk"]}
BLOOM = {"name": "bloom", "epsilon": 3.0, "bits": 32, "hashes": 2, "cohorts": 64}
SETS_OF_STRINGS: dict[str, Any] = {
    "domain": {"set": {"of": {"strings": {"longest": 8}}, "at_most": 2}},
    "mechanism": {"name": "set-olh", "epsilon": 2.0, "cohorts": 64},
}
PREFIXES: dict[str, Any] = {
    "domain": {"strings": {"longest": 8, "alphabet": "a-z"}},
    "mechanism": {"name": "prefixes", "epsilon": 2.0, "cohorts": 16, "step": 2, "depth": 2},
}
LEVELS = {"strict": {"epsilon": 0.5, "share": 0.5}, "open": {"epsilon": 3.0, "share": 0.5}}
LEVELLED = {"mechanism": {"name": "levels", "levels": LEVELS, "of": {"name": "oue"}}}
SET = {"domain": {"size": 20}, "mechanism": {"name": "ss", "epsilon": 1.0}}
BITS = TAGS | {"mechanism": {"name": "urap", "epsilon": 1.0}}
DESIGNS = {"domain": {"size": 8}, "mechanism": {"name": "bit-flip", "epsilon": 2.0, "bits": 3}}
COHORTS = STRINGS | {"mechanism": {"name": "cohort-olh", "epsilon": 2.0, "cohorts": 64}}
#: A spec, what devices hold, the same as the command has it, another value, and the test that finds out the latter.
CLIENTS: dict[str, tuple[dict[str, Any], Any, str, str, str]] = {
    "symbol": (TAGS, 0, "park", "clinic", ""),
    "tag": (TAGS, 1, "shop behind home", "shop", ""),
    "bits": (BITS, 1, "shop behind home", "shop", ""),
    "set": (SET, 7, "7", "8", ""),
    "record": (RECORD, {"app": 2, "hours": 7.5}, "hours=7.5 app=2", "hours=7.5 app=1", ""),
    "designs": (DESIGNS, 7, "7", "0", "design 0"),
    "cohorts": (COHORTS, "kiosk", "kiosk", "kiosks", "of the string"),
    "bloom": (STRINGS | {"mechanism": BLOOM}, "kiosk", "kiosk", "kiosks", "of the string"),
    "string sets": (SETS_OF_STRINGS, {"kiosk", "bank"}, "bank;kiosk", "bank;kiosks", "where the strings hit"),
    # Another string with the same first four characters differs in reports of whole strings alone.
    "prefixes": (PREFIXES, "kiosk", "kiosk", "kiost", "of the string, of prefix 2"),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_right_client_passes_and_one_that_holds_another_value_does_not(name: str, tmp_path: Path) -> None:
    keys, value, right, wrong, named = CLIENTS[name]
    spec = build.spec(**keys)
    hidden: dict[Any, Any] = (
        {value: "home"} if "behind" in right else {each: {} for each in value} if name == "record" else {}
    )
    sent = archive(tmp_path, spec, value, hidden)
    found, other = (
        verify(spec, Given(sent, values.split(), [tag] if tag else []))
        for values, _, tag in (text.partition(" behind ") for text in (right, wrong))
    )
    assert found.tested[0].sent.reports == 1000
    assert found.failed is None
    assert found.p_value >= LEVEL
    assert other.failed is not None
    assert named in other.failed.name


def test_reports_of_a_level_follow_the_epsilon_of_this_level(tmp_path: Path) -> None:
    spec = build.spec(**LEVELLED)
    sent = archive(tmp_path, spec, 2, level="open")
    assert verify(spec, Given(sent, ["2"], []), level="open").failed is None
    assert verify(spec, Given(sent, ["2"], []), level="strict").failed is not None
    with pytest.raises(ValueError, match="needs one of the levels strict, open"):
        verify(spec, Given(sent, ["2"], []))


@pytest.mark.parametrize(("key", "wrong", "name"), [("cohorts", 32, "cohorts"), ("theta", 0.9, "bits")])
def test_a_client_of_strings_with_a_wrong_parameter_is_found(key: str, wrong: Any, name: str, tmp_path: Path) -> None:
    mechanism = BLOOM | {"theta": 0.8}
    sent = archive(tmp_path, build.spec(**STRINGS, mechanism=mechanism | {key: wrong}), "kiosk")
    failed = verify(build.spec(**STRINGS, mechanism=mechanism), Given(sent, ["kiosk"], [])).failed
    assert failed is not None
    assert name in failed.name


OF_WORDS: dict[str, Any] = {
    "domain": {"record": {"app": {"size": 4}, "word": STRINGS["domain"] | {"candidates": ["kiosk"]}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "rr"}, "word": {"name": "cohort-olh"}}},
}
SIZED = SETS_OF_STRINGS | {"mechanism": {**SETS_OF_STRINGS["mechanism"], "sizes": 0.1}}
KEPT = {"domain": {"size": 3}, "mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0}}


@pytest.mark.parametrize(
    ("keys", "n", "values", "tags", "error"),
    [
        (TAGS, 999, ["park"], [], "holds 999 reports, which show little; let the client report this value 1,000 times"),
        (TAGS, 1, [], [], "no value is given; add --value"),
        (TAGS, 1, ["park", "shop"], [], "--value is given 2 times, but c collects no record"),
        (TAGS, 1, ["parc"], [], "'parc' is not a label of the domain"),
        (TAGS, 1, ["park"], ["hone"], r"'hone' is not a tag of the spec \(did you mean 'home'\?\)"),
        (TAGS, 1, ["park"], ["x"], "'x' is not a tag of the spec; choose from home"),
        (RECORD, 1, ["2"], [], "--value '2': write ATTRIBUTE=..., with one of app, hours"),
        (RECORD, 1, ["app=2"], [], "c collects 'hours'; add --value hours=VALUE"),
        (OF_WORDS, 1, ["app=1", "word=kiosk"], [], "collects records with strings, whose reports verify does not test"),
        (SETS_OF_STRINGS, 1000, ["a;b;c"], [], "more than the 2 strings that a device reports; take a smaller one"),
        (SIZED, 1, ["bank"], [], "also collects the sizes of sets of strings, which verify does not test"),
        (
            KEPT,
            1000,
            ["1"],
            [],
            "1,000 reports of 1,000 name no device, and reports of one permanent response depend on each other; name",
        ),
    ],
)
def test_an_archive_that_shows_nothing_is_refused_with_what_to_do(
    keys: dict[str, Any], n: int, values: list[str], tags: list[str], error: str, tmp_path: Path
) -> None:
    reports = [build.report(number, 0).encode() for number in range(n)]
    with pytest.raises(ValueError, match=error):
        verify(build.spec(**keys), Given(stream(tmp_path, reports), values, tags))


@pytest.mark.parametrize(
    ("messages", "error"),
    [
        ([build.report(1, 9).encode()], "a collector rejects 1 report; uldp decode says why"),
        (
            [build.report(number % 900, 0).encode() for number in range(1000)],
            "100 reports of 1,000 repeat the report_id",
        ),
    ],
)
def test_reports_that_a_collector_does_not_count_are_refused(messages: list[bytes], error: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=error):
        verify(build.spec(**TAGS), Given(stream(tmp_path, messages), ["park"], []))


SECOND, LAST = "equal reports, of first and second reports", "equal reports, of first and last reports"
FEW = build.spec(domain={"size": 50}, mechanism={"name": "rr", "epsilon": 3.0, "lasting_epsilon": 4.0})


@pytest.mark.parametrize(
    ("kept", "tests", "failed"),
    [
        ([0, 0], [SECOND], None),
        ([0, 0, 0], [SECOND, LAST], None),
        ([0, 1], [SECOND], SECOND),
        ([0, 0, 1], [SECOND, LAST], LAST),
        ([0, 1, 0], [SECOND, LAST], SECOND),
    ],
)
def test_a_device_that_forgets_its_response_is_found(
    kept: list[int], tests: list[str], failed: str | None, tmp_path: Path
) -> None:
    found = verify(FEW, Given(of_devices(tmp_path / "stream", FEW, 1, kept), ["1"]))
    assert [check.name for check in found.checks[2:]] == tests
    assert (found.failed and found.failed.name) == failed
    assert found.tested[0].sent.text == f"{1000 * len(kept):,} reports of 1,000 devices"


def test_devices_that_report_once_show_no_kept_response(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 devices reported twice or more, which show little of the responses that"):
        verify(FEW, Given(of_devices(tmp_path / "once", FEW, 1, [0]), ["1"]))


@pytest.mark.parametrize(("kept", "broken"), [([0] * 4, False), ([0, 1, 2, 3], True)])
def test_all_reports_of_a_device_keep_the_lasting_promise_or_break_it(
    kept: list[int], broken: bool, tmp_path: Path
) -> None:
    spec = build.spec(domain={"size": 3}, mechanism={"name": "rr", "epsilon": 1.0, "lasting_epsilon": 1.2})
    sent, other = (Given(of_devices(tmp_path / str(value), spec, value, kept), [str(value)]) for value in (0, 2))
    one, lasting = verify(spec, sent, other).losses
    assert (one.of, one.promised, one.broken) == ("one report", 1.0, False)
    assert (lasting.of, lasting.promised, lasting.broken) == ("4 reports of a device", 1.2, broken)
    assert one.bound.epsilon > 0.5


def test_tags_of_the_second_archive_have_an_option_of_their_own(uldp: Run, tmp_path: Path) -> None:
    keys = {"collection": "c", "version": 1, "mechanism": {"name": "urr", "epsilon": 1.0}, "window": {"size": "1h"}}
    (path := tmp_path / "spec.yaml").write_text(json.dumps(TAGS | keys))
    spec = CollectionSpec.load(path)
    sent, other = (archive(tmp_path / str(value), spec, value, {value: "home"}) for value in (0, 1))
    options = ("verify", "--spec", path, "--value", "park", "--tag", "home", sent, "--against", other)
    code, out, err = uldp(*options, "--against-value", "shop", "--against-tag", "home")
    assert (code, err) == (0, "")
    assert "epsilon of one report is at least 0 (95 %), promised 0\n" in out
    code, out, err = uldp(*options, "--against-value", "shop", "--against-tag", "hone")
    assert code == 1
    assert "'hone' is not a tag of the spec" in err


def test_a_client_with_another_epsilon_breaks_the_promise(uldp: Run, tmp_path: Path) -> None:
    text = (
        "{{collection: c, version: 1, domain: {{size: 4}}, mechanism: {{name: rr, epsilon: {}}}, window: {{size: 1h}}}}"
    )
    spec, other = tmp_path / "spec.yaml", tmp_path / "other.yaml"
    spec.write_text(text.format(1))
    other.write_text(text.format(2))
    right, wrong = (
        [archive(tmp_path / f"{of.stem} {value}", CollectionSpec.load(of), value, n=2000) for value in (2, 3)]
        for of in (spec, other)
    )
    options = ("--spec", spec, "--value", "2", "--against-value", "3")
    code, out, err = uldp("verify", *options, right[0], "--against", right[1])
    assert (code, err) == (0, "")
    assert "\nepsilon of one report is at least 0." in out
    assert " (95 %), promised 1\n" in out
    code, out, err = uldp("verify", *options, wrong[0], "--against", wrong[1])
    assert code == 1
    assert err.startswith("error: the client breaks the promise of c: epsilon of one report is at least 1.")
    assert " (95 %), and 1 is promised; some payloads are " in err


def test_the_exit_code_is_the_verdict(uldp: Run, tmp_path: Path) -> None:
    text = "{collection: c, version: 1, domain: {size: 4}, mechanism: {name: rr, epsilon: 1}, window: {size: 1h}}"
    (tmp_path / "spec.yaml").write_text(text)
    sent = archive(tmp_path, CollectionSpec.load(tmp_path / "spec.yaml"), 2)
    code, out, err = uldp("verify", "--spec", tmp_path / "spec.yaml", "--value", "2", sent)
    assert (code, err) == (0, "")
    assert "the reports follow rr: p-value of all tests " in out
    code, out, err = uldp("verify", "--spec", tmp_path / "spec.yaml", "--value", "1", sent)
    assert code == 1
    assert err.startswith("error: the client does not follow rr: symbol 2 came ")


def test_epsilon_of_prefixes_of_strings_has_no_bound(tmp_path: Path) -> None:
    spec = build.spec(**PREFIXES)
    given = Given(archive(tmp_path, spec, "kiosk"), ["kiosk"], [])
    with pytest.raises(ValueError, match="verify bounds no epsilon of prefixes of strings; leave out --against"):
        verify(spec, given, given)
