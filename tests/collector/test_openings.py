"""Before a spec opens, its reports are those of an unknown version: byte for byte as if there were no such spec."""

from typing import Any

from tests.build import HOUR, START, message, report, spec
from uldp.collector.reader import Decoded, ReportReader
from uldp.collector.shared_specs import HotSpecs
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import moment_at

FIRST = spec()
SECOND = spec(version=2, opens="2026-01-01T10:00Z")
OTHER = spec(collection="d", opens="2026-01-01T11:00Z")


def sent(hours: int) -> list[Message]:
    """Reports to three collections, published in the first half of each hour."""
    keys = ("c", 1), ("c", 2), ("d", 1)
    return [
        message(report(3 * hour + number, 1, START + hour * HOUR, key=key), START + hour * HOUR + number)
        for hour in range(hours)
        for number, key in enumerate(keys)
    ]


def decode(specs: list[CollectionSpec], messages: list[Message], **keys: Any) -> Decoded:
    return ReportReader(specs, judge_lateness=True, **keys).decode(messages)


def columns(decoded: Decoded) -> list[tuple[str, int, int]]:
    return sorted((part.collection, part.version, int(at)) for part in decoded.columns for at in part.slices)


def test_each_report_counts_from_the_opening_of_its_spec_on() -> None:
    decoded = decode([FIRST, SECOND, OTHER], sent(3))
    hours = [START + hour * HOUR for hour in range(3)]
    expected = [*(("c", 1, hour) for hour in hours), *(("c", 2, hour) for hour in hours[1:]), ("d", 1, hours[2])]
    assert columns(decoded) == expected
    assert sorted((each.reason, each.detail) for each in decoded.rejected) == [
        (Reason.UNKNOWN_COLLECTION, "'d' version 1"),
        (Reason.UNKNOWN_COLLECTION, "'d' version 1"),
        (Reason.UNKNOWN_VERSION, "'c' version 2"),
    ]
    assert decoded.received == 9


def test_what_comes_before_is_as_if_the_spec_did_not_exist() -> None:
    before = sent(1)
    knowing, unaware = decode([FIRST, SECOND, OTHER], before), decode([FIRST], before)
    assert knowing.rejected == unaware.rejected
    assert columns(knowing) == columns(unaware)
    assert not knowing.partials
    assert not unaware.partials


def test_a_closed_version_rejects_what_is_published_later_and_accounts_it_at_that_time() -> None:
    closed = FIRST.lasting(None, moment_at(START + HOUR))
    messages = [message(report(n, 1, START), START + n * HOUR // 2) for n in range(4)]
    decoded = decode(
        [closed.model_copy(update={"window": spec(window={"size": "1h", "allowed_lateness": "9h"}).window})], messages
    )
    assert columns(decoded) == [("c", 1, START)] * 2
    assert {each.reason for each in decoded.rejected} == {Reason.RETIRED_VERSION}
    assert decoded.rejected_reports == 2
    assert decoded.partials["c", 1].slots.tolist() == [START + HOUR]


class Changing(HotSpecs):
    """Specs that a test changes."""


def test_a_reader_takes_specs_that_come_and_change_while_it_reads() -> None:
    specs = Changing([FIRST])
    reader = ReportReader(specs, judge_lateness=True)
    messages = sent(3)
    assert columns(reader.decode(messages)) == columns(decode([FIRST], messages))
    specs.change([SECOND, OTHER])
    assert columns(reader.decode(messages)) == columns(decode([FIRST, SECOND, OTHER], messages))
    specs.change([FIRST.lasting(None, moment_at(START + HOUR))])
    assert len(columns(reader.decode(messages))) == 4
