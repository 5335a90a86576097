"""uldp rejected and uldp late: what was not counted, by reason, with senders and a sample."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests import build
from tests.build import START
from tests.pipelines.command import SPEC, Run
from tests.pipelines.results.samples import REJECTED
from uldp.collector.signals import digest_of_day, sender_digest
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.status.uncounted import (
    MOST_SENDERS,
    Digests,
    Late,
    group_json,
    group_lines,
    groups_of_late,
    groups_of_rejected,
)
from uldp.schemas.reasons import MEANING, REMEDY, Reason
from uldp.schemas.records import SENDER, Message, ReportBatch, iso
from uldp.schemas.rejected import Rejected, count_reasons

KEY = bytes(32)
DIGESTS = Digests(KEY)
GOOD = build.report(7, 3).encode()
SPECS = [build.spec(domain={"labels": ["park", "shop", "clinic"]}, sensitive=["clinic"], tags=[{"name": "home"}])]


def rejected(reason: str, n: int = 1, at: int = START, sender: str | None = None, body: bytes = b"\x00") -> Rejected:
    attributes = {} if sender is None else {SENDER: sender}
    return replace(
        REJECTED, reason=reason, bodies=(body,), publish_times=(at,), reports=n, attributes=attributes, runs=()
    )


def lines(*records: Rejected) -> list[str]:
    return [line for group in groups_of_rejected(records) for line in group_lines(group, SPECS, DIGESTS)]


def digest(sender: str) -> str:
    return digest_of_day(sender_digest(sender, KEY), START)


def test_a_group_says_what_it_means_and_shows_a_sample() -> None:
    said = lines(rejected("not_avro"))
    assert said[0] == f"not_avro: 1 report, published from {iso(START)} to {iso(START)}"
    assert said[1:5] == [
        f"  meaning     {MEANING[Reason.NOT_AVRO]}",
        f"  remedy      {REMEDY[Reason.NOT_AVRO]}",
        "  detail      starts with 00",
        "  senders     no message names one",
    ]
    assert said[5] == "  sample      s:1"
    assert said[6].startswith("    message of 1 bytes, published")


def test_senders_have_the_digests_of_flags() -> None:
    records = [rejected("truncated", sender=name) for name in ("a", "b", "b", "c", "d")] + [rejected("truncated", 7)]
    (line,) = [line for line in lines(*records) if line.startswith("  senders")]
    assert line == (
        f"  senders     {digest('b')} 2, {digest('a')} 1, {digest('c')} 1, 1 other, 7 of messages that name none"
    )
    assert "'b'" not in line


def test_of_very_many_senders_the_rest_is_counted_together() -> None:
    (group,) = groups_of_rejected(rejected("truncated", sender=str(number)) for number in range(MOST_SENDERS + 5))
    assert (len(group.senders), group.others) == (MOST_SENDERS, 5)
    assert group.senders.total() + group.others == group.reports


def test_a_report_that_would_be_counted_now_may_be_replayed() -> None:
    said = lines(rejected("unknown_version", body=GOOD))
    assert said[-1] == "  now         the specs of these results would count it; uldp replay sends it again"
    assert "    payload" not in said[-1]
    assert not any("would count it" in line for line in lines(rejected("not_avro")))


def test_without_stored_bytes_there_is_no_sample() -> None:
    said = lines(replace(rejected("not_avro"), bodies=()))
    assert said[-1] == "  sample      none: messages like these are counted alone"


def test_late_reports_are_those_of_collections() -> None:
    batch = ReportBatch("c", 2, bytes(range(32)), bytes(16), symbols=bytes(8)).encode()
    late = [
        Late.from_avro(Message(data, START + number, {SENDER: "x"}).to_avro())
        for number, data in enumerate((GOOD, batch, GOOD, GOOD))
    ]
    groups = groups_of_late(late)
    assert [(each.name, each.reports, each.messages) for each in groups] == [("c v1", 3, 3), ("c v2", 2, 1)]
    said = list(group_lines(groups[0], SPECS, DIGESTS))
    assert said[0] == f"c v1: 3 reports, published from {iso(START)} to {iso(START + 3)}"
    assert "    payload     symbol 3 of 4, the tag 'home'" in [
        line.replace("      payload", "    payload") for line in said
    ]


def test_json_says_the_same() -> None:
    (group,) = groups_of_rejected([rejected("not_avro", 4, sender="a")])
    said = group_json(group, SPECS, DIGESTS)
    shown = {"reason": "not_avro", "reports": 4, "first": iso(START), "named_senders": 1, "nameless_reports": 0}
    assert said.items() >= shown.items()
    assert said["senders"] == [{"digest": digest("a"), "reports": 4}]
    json.dumps(said)


def test_the_command_counts_what_the_results_have(uldp: Run, backfilled: Path) -> None:
    code, out, _ = uldp("rejected", backfilled, "--json")
    assert code == 0
    found = {each["reason"]: each["reports"] for each in map(json.loads, out.splitlines())}
    assert found == count_reasons(ResultsFolder(backfilled).rejected())
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert uldp("late", backfilled) == (0, f"{backfilled}: holds no late reports\n", "")


def test_decode_reads_rejected_reports(uldp: Run, backfilled: Path) -> None:
    code, out, err = uldp("decode", "--spec", SPEC, backfilled / "rejected", "--first", "0")
    counted = count_reasons(ResultsFolder(backfilled).rejected())
    verdicts = ", ".join(f"{number:,} {reason}" for reason, number in sorted(counted.items()))
    assert out.splitlines()[-1] == f"in all: {counted.total():,} reports: {verdicts}"
    assert (code, err) == (1, f"error: a collector would reject {counted.total():,} reports\n")
    file = next((backfilled / "rejected").glob("*.avro"))
    assert uldp("decode", "--spec", SPEC, file, "--first", "0")[1].splitlines()[-1].startswith("in all: ")


@pytest.mark.parametrize("command", ["rejected", "late", "status"])
def test_what_is_no_directory_is_one_clear_line(uldp: Run, tmp_path: Path, command: str) -> None:
    code, _, err = uldp(command, tmp_path / "nothing")
    assert (code, err.count("\n"), "no such file or directory" in err) == (1, 1, True)
