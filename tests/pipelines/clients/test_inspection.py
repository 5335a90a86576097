"""uldp decode: bytes as the collector reads them; and vectors of a spec, the same each time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.conformance.vectors import read
from tests.mechanisms.protocols import specs
from tests.pipelines.command import Run
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.inspection import Inspection
from uldp.pipelines.clients.sent import UNKNOWN, sent_messages
from uldp.pipelines.clients.vectors import readable, vectors
from uldp.schemas.framing import report_store
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, ReportBatch
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

SPEC = build.spec(domain={"labels": ["park", "shop", "clinic"]}, sensitive=["clinic"], tags=[{"name": "home"}])
SYMBOL = build.report(7, 3)


def lines(*messages: Message, spec: CollectionSpec | None = SPEC, first: int = 10) -> tuple[list[str], Inspection]:
    inspection = Inspection([] if spec is None else [spec])
    return list(inspection.lines(iter(messages), first)), inspection


def rows(*messages: Message, spec: CollectionSpec | None = SPEC) -> dict[str, str]:
    """The lines about one report, by their headings."""
    return {line[2:13].strip(): line[14:] for line in lines(*messages, spec=spec)[0][1:]}


def test_a_report_is_shown_field_by_field() -> None:
    assert rows(Message(SYMBOL.encode(), UNKNOWN)) == {
        "header": "c301 e6a3dbfe76e5d390",
        "schema": "uldp.Report",
        "collection": "'c' version 1",
        "report_id": SYMBOL.report_id.hex(),
        "event_time": "1767258000000 (2026-01-01T09:00:00Z)",
        "union index": "0: the symbol 3",
        "payload": "symbol 3 of 4, the tag 'home'",
        "verdict": "counted",
    }


def test_without_a_spec_the_fields_are_shown_and_not_judged() -> None:
    shown = rows(Message(SYMBOL.encode(), UNKNOWN), spec=None)
    assert shown["union index"] == "0: the symbol 3"
    assert shown["verdict"].startswith("not judged; give the spec")
    assert "payload" not in shown


def test_the_age_of_a_message_without_a_publish_time_is_not_judged() -> None:
    old = build.report(1, 0, time=0).encode()
    assert rows(Message(old, UNKNOWN))["verdict"] == "counted"
    assert rows(Message(old, build.START))["verdict"].startswith("rejected as expired")


@pytest.mark.parametrize("vector", read("messages.json")["rejected"], ids=lambda vector: str(vector["name"]))
def test_the_command_gives_the_reason_of_each_vector(vector: dict[str, str], uldp: Run, tmp_path: Path) -> None:
    data = bytes.fromhex(vector["message"]) + bytes(int(vector.get("zeros", 0)))
    (tmp_path / "message").write_bytes(data)
    given: list[str | Path] = []
    for number, keys in enumerate(read("messages.json")["served"]):
        (tmp_path / f"{number}.yaml").write_text(json.dumps(keys))
        given += ["--spec", tmp_path / f"{number}.yaml"]
    sources = [tmp_path / "message"] + ([data.hex()] if len(data) < 1000 else [])
    for source in sources:
        code, out, _ = uldp("decode", source, *given, "--published", read("messages.json")["publish_time"])
        assert (code, f"rejected as {vector['reason']}: " in out) == (1, True)


@pytest.mark.parametrize(
    ("columns", "shown"), [({"symbols": bytes(8)}, "0: 8 bytes of symbols"), ({"bits": b"ab"}, "1: 2 bytes of bits")]
)
def test_a_batch_is_shown_column_by_column(columns: dict[str, bytes], shown: str) -> None:
    found = rows(Message(ReportBatch("c", 1, bytes(32), bytes(16), **columns).encode(), UNKNOWN), spec=None)
    assert (found["report_ids"], found["event_times"]) == ("32 bytes", "16 bytes")
    assert found["union index"] == shown


def test_of_many_reports_the_first_are_shown_and_all_are_counted() -> None:
    batch = build.batch([build.report(number, number % 5) for number in range(10)])
    messages = [Message(data, build.START) for data in (b"junk", batch.encode(), SYMBOL.encode(), b"", SYMBOL.encode())]
    shown, inspection = lines(*messages, first=4)
    assert inspection.verdicts == {"counted": 10, "out_of_domain": 2, "not_avro": 2}
    assert [line for line in shown if line.startswith(" report")] == [f" report {n} of 10" for n in (1, 2, 3)]
    assert lines(*messages, first=0)[1].verdicts == inspection.verdicts


def test_a_forged_message_gives_few_and_printable_lines(uldp: Run, tmp_path: Path) -> None:
    forged = build.report(1, 0, key=("\x1b[2J" * 100_000, 1)).encode()
    (tmp_path / "message").write_bytes(forged)
    code, out, err = uldp("decode", tmp_path / "message")
    assert len(out) < 1000
    assert "\x1b" not in out + err
    assert code == 0  # no spec, no verdict


def test_a_message_comes_as_digits_as_a_file_and_in_a_file_of_messages(tmp_path: Path) -> None:
    data = SYMBOL.encode()
    (tmp_path / "one").write_bytes(data)
    LocalStream.create(tmp_path / "stream").append([Message(data, build.START)])
    spaced = " ".join(data.hex()[at : at + 8] for at in range(0, 2 * len(data), 8))
    sources = (data.hex(), data.hex().upper(), spaced, tmp_path / "one")
    for source in sources:
        assert list(sent_messages(str(source))) == [Message(data, UNKNOWN)]
    for source in (tmp_path / "stream", tmp_path / "stream" / "000000000000.avro"):
        assert [(each.data, each.publish_time) for each in sent_messages(str(source))] == [(data, build.START)]


def test_the_exit_code_says_whether_all_would_be_counted(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(
        "{collection: c, version: 1, domain: {size: 3}, mechanism: {name: rr, epsilon: 1}, window: {size: 1h}}"
    )
    for payload, expected in ((2, 0), (3, 1)):
        code, out, err = uldp("decode", build.report(1, payload).encode().hex(), "--spec", tmp_path / "spec.yaml")
        assert (code, str(Reason.OUT_OF_DOMAIN) in out) == (expected, bool(expected))
        assert err == ("error: a collector would reject 1 report\n" if expected else "")


def nodes(node: Any) -> Iterator[Any]:
    yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from nodes(each)


@pytest.mark.parametrize("name", specs())
def test_each_spec_has_vectors_with_its_table(name: str) -> None:
    spec = build.spec(**specs()[name])
    found = vectors(spec)
    assert found == vectors(spec)
    assert found["table"] == readable(device_table(spec))
    assert all(abs(each) <= 1 << 53 for each in nodes(found) if isinstance(each, int))
    for device in found["devices"]:
        for report in device["reports"]:
            decoded = report_store().decode(bytes.fromhex(report["message"]))[1]
            sent = decoded["payload"].hex() if isinstance(decoded["payload"], bytes) else decoded["payload"]
            assert (decoded["event_time"], sent) == (report["event_time"], report["payload"])


def test_devices_with_a_budget_have_a_ledger() -> None:
    assert vectors(build.spec(budget={"epsilon": 20, "every": "30d"}))["devices"]
