"""Files whose names and bytes follow from what they hold."""

import io
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import apache_beam as beam
import fastavro
import pytest

from tests import build
from tests.build import HOUR, START
from tests.pane_files import estimate_file, statistic_file
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.durable_files import encode_record
from uldp.transforms.io.results.names import stored_file, window_name
from uldp.transforms.io.results.write import WriteResults

FILE = "c-v2.20260101T090000Z--20260101T100000Z"


def support(revision: int = 3, start: int = START, end: int = START + HOUR) -> Statistic:
    six = Accounting(received=8, counted=6, late=2)
    return build.pane([5, 1, 0], "late", revision, start=start, end=end, key=("c", 2), accounting=six)


def estimate(estimator: str = "mle", revision: int = 3) -> Estimate:
    tags = {"home": (0.0, 0.1)}
    return build.estimate(support(revision), [0.8, 0.2], [0.1, 0.1], mechanism="urr", estimator=estimator, tags=tags)


def late(number: int) -> Message:
    return Message(b"late %d" % number, number, {"k": "v"}, f"s:{number}")


def rejected(number: int) -> Rejected:
    return Rejected("decode", "malformed", "", (b"x",), MappingProxyType({}), (number,), "s:1", 1, "0.1.0")


def late_file(messages: list[Message]) -> tuple[str, bytes]:
    return stored_file("late", [encode_record("message", message.to_avro()) for message in messages], "message")


def rejected_file(records: list[Rejected]) -> tuple[str, bytes]:
    return stored_file("rejected", [encode_record("rejected", record.to_avro()) for record in records], "rejected")


def read(content: bytes) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], list(fastavro.reader(io.BytesIO(content))))


# Names and content.


def test_a_pane_is_named_by_all_that_sets_it_apart() -> None:
    assert statistic_file(support())[0] == f"counts/{FILE}.000003.avro"
    assert estimate_file(estimate())[0] == f"estimates/{FILE}.000003.mle.avro"
    assert estimate_file(estimate("norm-sub", 12))[0] == f"estimates/{FILE}.000012.norm-sub.avro"


@pytest.mark.parametrize(
    ("start", "end", "name"),
    [
        (START, START + 1000, "20260101T090000Z--20260101T090001Z"),
        (START, START + 250, "20260101T090000Z--20260101T090000.250Z"),
        (START + 250, START + 500, "20260101T090000.250Z--20260101T090000.500Z"),
        (START + 999, START + 1001, "20260101T090000.999Z--20260101T090001.001Z"),
        (0, 5, "19700101T000000Z--19700101T000000.005Z"),
        (-900_000, 2_700_000, "19691231T234500Z--19700101T004500Z"),
        (253_402_300_799_998, 253_402_300_799_999, "99991231T235959.998Z--99991231T235959.999Z"),
    ],
)
def test_a_window_is_named_to_the_millisecond_where_it_has_to_be(start: int, end: int, name: str) -> None:
    assert window_name(*support(start=start, end=end).key) == f"c-v2/{name}"


def test_files_hold_what_they_are_named_for() -> None:
    assert read(statistic_file(support())[1]) == [support().to_avro()]
    assert read(estimate_file(estimate())[1]) == [estimate().to_avro()]
    assert read(late_file([late(1), late(2)])[1]) == [late(1).to_avro(), late(2).to_avro()]
    assert read(rejected_file([rejected(1)])[1]) == [rejected(1).to_avro()]


# Writing.


MISSING = Missing("t/0", 5, 9, 0, 1)


def write(out: Path) -> dict[str, bytes]:
    """Write one of everything; all files below ``out``, by name."""
    with beam.Pipeline("FnApiRunner") as pipeline:
        aggregated = Aggregated(
            pipeline | "E" >> beam.Create([estimate("mle"), estimate("empirical")]).with_output_types(Estimate),
            pipeline | "C" >> beam.Create([support(0), support(1)]).with_output_types(Statistic),
            pipeline | "L" >> beam.Create([late(n) for n in range(5)], reshuffle=False).with_output_types(Message),
            pipeline | "R" >> beam.Create([rejected(1)]).with_output_types(Rejected),
            pipeline | "M" >> beam.Create([MISSING]).with_output_types(Missing),
        )
        _ = aggregated | WriteResults(str(out))
    return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}


def test_writing_twice_gives_the_same_files(tmp_path: Path) -> None:
    once = write(tmp_path)
    assert {name for name in once if not name.startswith(("late/", "rejected/"))} == {
        f"estimates/{FILE}.000003.mle.avro",
        f"estimates/{FILE}.000003.empirical.avro",
        *(name for name in once if name.startswith(f"counts/{FILE}.")),
        stored_file("missing", [encode_record("missing", MISSING.to_avro())], "missing")[0],
    }
    assert sum(name.startswith("rejected/") for name in once) == 1
    assert write(tmp_path) == once
