"""The conformance vectors are those of the code, cover it, and can be followed without it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance import client, functions, variable, vectors
from tests.conformance.kept import BITS, UNIFORM
from tests.conformance.responses import RESPONSES, symbols, width
from tests.mechanisms.protocols import specs
from uldp.collector.reader import Decoded, ReportReader
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.local_hashing.randomizer import LocalHashing
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.families import mechanism_names

#: The files but those of no mechanism, which ``tests/test_pieces_of_a_mechanism.py`` names.
NAMES = sorted({path.name for path in vectors.FOLDER.iterdir()} & vectors.names())
CASES = {case["name"]: case for name in NAMES for case in vectors.read(name).get("cases", ())}
MESSAGES, FUNCTIONS = vectors.read("messages.json"), vectors.read("functions.json")
#: The mechanisms that have an example.
EXAMPLES = {keys["mechanism"]["name"] for keys in specs().values()}
each_case = pytest.mark.parametrize("name", CASES)


@cache
def documents() -> dict[str, Any]:
    return vectors.documents()


def alike(one: Any, other: Any) -> bool:
    """Whether two contents are equal, but for floats: another machine's exponential may have another last digit."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == pytest.approx(other, rel=vectors.TOLERANCE)) if isinstance(one, float) else bool(one == other)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_its_version(name: str) -> None:
    assert vectors.read(name)["version"] == 1


#: The files but those of a mechanism without an example, which is missing in ``tests/test_pieces_of_a_mechanism.py``.
MADE = [name for name in NAMES if Path(name).stem in EXAMPLES or Path(name).stem not in mechanism_names()]


@pytest.mark.parametrize("name", MADE)
def test_a_file_is_what_the_code_gives(name: str) -> None:
    made = json.loads(json.dumps(documents()[name]))
    assert alike(made, vectors.read(name)), "run: python -m tests.conformance.vectors"


def decode(message: str, *specs: CollectionSpec, zeros: int = 0, time: int = MESSAGES["publish_time"]) -> Decoded:
    return ReportReader(specs, judge_lateness=False).decode([Message(bytes.fromhex(message) + bytes(zeros), time)])


@each_case
def test_a_collector_counts_the_reports_of_devices_and_rejects_the_others(name: str, tmp_path: Path) -> None:
    spec = vectors.load(CASES[name], tmp_path)
    for report in (report for device in CASES[name]["devices"] for report in device["reports"]):
        decoded = decode(report["message"], spec, time=report["event_time"])
        (columns,) = decoded.columns
        payload = columns.payloads[0]
        assert (payload.tobytes().hex() if isinstance(payload, np.ndarray) else int(payload)) == report["payload"]
    for each in CASES[name]["rejected"]:
        assert [rejected.reason for rejected in decode(each["message"], spec).rejected] == [each["reason"]]


def _without_memory(case: dict[str, Any]) -> bool:
    """Whether a device needs no permanent response."""
    mechanism = case["spec"]["mechanism"]
    lasting = [each.get("lasting_epsilon") for each in (mechanism, *mechanism.get("levels", {}).values())]
    return not any(lasting)


#: The cases that the client can send.
FOLLOWED = [
    name for name, case in CASES.items() if case["spec"]["mechanism"]["name"] in client.NAMES and _without_memory(case)
]


def test_there_is_a_case_of_each_mechanism_of_the_client() -> None:
    with_file = {name for name in client.NAMES if f"{name}.json" in NAMES}
    assert {CASES[name]["spec"]["mechanism"]["name"] for name in FOLLOWED} == with_file


OF_ONE_VARIABLE = [
    name
    for name in FOLLOWED
    if CASES[name]["spec"]["mechanism"]["name"] in RESPONSES
    and "by" not in CASES[name]["spec"]
    and "sizes" not in CASES[name]["spec"]["mechanism"]
]


@pytest.mark.parametrize("name", OF_ONE_VARIABLE)
def test_the_client_knows_the_form_of_payloads(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    form = build_protocol(vectors.load(case, tmp_path)).mechanism.form
    of = client.variable_of(case)
    assert symbols(of) in {None, form.symbols}  # tests/test_pieces_of_a_mechanism.py names a number that is not there
    assert form.width in {None, width(of)}


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_client_that_follows_the_page_sends_these_payloads(name: str) -> None:
    for user in CASES[name]["devices"]:
        for report in user["reports"]:
            draws = variable.Draws(report["draws"])
            payload = client.payload(CASES[name], user, draws)
            assert (payload.hex() if isinstance(payload, bytes) else payload) == report["payload"]
            assert not draws.left


#: The cases of permanent responses to a value or a string. Where a device keeps draws too (a number, a design of
#: bit-flip, an attribute, a level), this client has none.
KEPT = [
    name
    for name, case in CASES.items()
    if case["spec"]["mechanism"].get("lasting_epsilon")
    and case["spec"]["mechanism"]["name"] in {*UNIFORM, *BITS}
    and "by" not in case["spec"]
    and "sizes" not in case["spec"]["mechanism"]
]


def test_the_client_keeps_a_response_of_most_mechanisms() -> None:
    assert {CASES[name]["spec"]["mechanism"]["name"] for name in KEPT} == {*UNIFORM, *BITS}


@pytest.mark.parametrize("name", KEPT)
def test_a_client_that_keeps_its_response_sends_these_payloads(name: str) -> None:
    for user in CASES[name]["devices"]:
        device = client.kept(CASES[name])
        for report in user["reports"]:
            draws = variable.Draws(report["draws"])
            payload = device.report(user["value"], user["tag"], draws)
            assert (payload.hex() if isinstance(payload, bytes) else payload) == report["payload"]
            assert not draws.left


@each_case
def test_reports_with_and_without_noise_are_among_those_of_a_case(name: str) -> None:
    payloads = {json.dumps(report["payload"]) for user in CASES[name]["devices"] for report in user["reports"]}
    assert len(payloads) > 1


@pytest.mark.parametrize(
    "vector", [*MESSAGES["rejected"], *MESSAGES["negative"]], ids=lambda vector: str(vector["name"])
)
def test_a_collector_rejects_a_message(vector: dict[str, Any]) -> None:
    specs = map(CollectionSpec.parse, MESSAGES["served"])
    decoded = decode(vector["message"], *specs, zeros=vector.get("zeros", 0))
    assert {rejected.reason for rejected in decoded.rejected} == {vector["reason"]}
    assert not decoded.columns


def test_there_is_a_message_for_every_reason() -> None:
    cases = [each for case in CASES.values() for each in case["rejected"]]
    reasons = {each["reason"] for each in (*cases, *MESSAGES["negative"], *MESSAGES["rejected"])}
    # A batch of too many windows is 17 kB, and no mistake of a client's code; nor is a sender's number of messages.
    assert reasons == {*Reason} - {Reason.TOO_MANY_WINDOWS, Reason.OVER_SENDER_LIMIT}


@pytest.mark.parametrize("vector", FUNCTIONS["hash"], ids=lambda each: f"{each['seed']}-{each['symbol']}")
def test_a_seed_hashes_a_symbol_into_a_bucket(vector: dict[str, Any]) -> None:
    seed, symbol, buckets = vector["seed"], vector["symbol"], vector["buckets"]
    assert f"{functions.hash_of(seed, symbol):016x}" == vector["hash"]
    assert functions.bucket_of(seed, symbol, buckets) == vector["bucket"]
    payload = np.frombuffer(bytes.fromhex(vector["payload"]), dtype=np.uint8)[np.newaxis]
    assert LocalHashing(symbol + 1, 1.0, buckets).statistic(payload)[symbol] == 1


@pytest.mark.parametrize("vector", FUNCTIONS["strings"], ids=lambda each: repr(each["text"]))
def test_a_string_has_a_symbol_and_positions(vector: dict[str, Any]) -> None:
    symbol = functions.symbol_of(vector["text"], vector["longest"])
    assert symbol.to_bytes(6, "little").hex() == vector["symbol"]
    found = functions.positions(vector["cohort"], symbol, vector["hashes"], vector["size"])
    assert found == vector["positions"]
