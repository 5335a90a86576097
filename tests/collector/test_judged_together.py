"""Collections with the same rules are judged together, with the outcome that each has alone."""

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.collector.decoding import accounting, outcomes, spec, take_path
from uldp.collector.collections import serve
from uldp.collector.reader import Decoded, ReportReader
from uldp.schemas.codec.encode import encode_batch
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionKey

SPECS = [
    spec("one", 1, "urr"),
    spec("two", 1, "urr"),
    spec("day", 1, "urr", window={"size": "1d"}),
    spec("exact", 1, "urr", event_time="exact"),
    spec("retired", 1, "urr", retired=True),
    spec("bits", 1, "urap"),
    spec("three", 1, "urr"),
    # Not the last: the rows behind those of three collections that have the same rules are read too.
    spec("other", 1, "urr", sensitive=[0]),
]
RULES = [each.rules for each in serve(SPECS).values()]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    take_path(monkeypatch, 1)


def messages(faults: bool) -> list[Message]:
    """Reports of all collections, in any order; with ``faults``, some in some collections cannot be counted."""
    rng = np.random.default_rng(5)
    made = []
    for number, of in enumerate(rng.integers(0, len(SPECS), 400).tolist()):
        symbol, time = int(rng.integers(0, 10)), START + int(rng.integers(0, 3 * HOUR))
        if faults and of != 1:
            symbol, time = symbol + 5 * (number % 7 == 0), time + 400 * 24 * HOUR * (number % 11 == 0)
        payload: int | bytes = symbol if SPECS[of].collection != "bits" else b"\x10\0"
        key: CollectionKey = SPECS[of].key
        report = Report(*key, number.to_bytes(16, "big"), time, payload)
        made.append(build.message(report, time + 2 * HOUR * (number % 5 == 0) if not faults or number % 11 else START))
    return made


def batches() -> list[Message]:
    """Batches of most collections, some of too many windows for a message; messages of a collection do not adjoin."""
    rng = np.random.default_rng(6)
    made = []
    for number in range(24):
        key, hours = SPECS[number % 4].key, 700 if number % 3 else 2
        times = START - HOUR * rng.permutation(hours)
        ids = rng.integers(0, 1 << 64, (hours, 2), np.uint64)
        made.append(Message(encode_batch(*key, ids, times, rng.integers(0, 12, hours, np.uint32)), START + HOUR))
    return made


def columns(decoded: Decoded) -> dict[CollectionKey, tuple[object, ...]]:
    found: dict[CollectionKey, tuple[object, ...]] = {}
    for each in decoded.columns:
        key = each.collection, each.version
        assert key not in found
        found[key] = tuple(column.tolist() for column in (each.report_ids, each.slices, each.payloads, each.signals))
    return found


def key_of(message: Message) -> CollectionKey:
    return next(each.key for each in SPECS if each.collection.encode() in message.data[:20])


@pytest.mark.parametrize("sent", [messages(False), messages(True), batches()], ids=["honest", "faults", "batches"])
@pytest.mark.parametrize("judge_lateness", [False, True])
def test_the_outcome_is_that_of_each_collection_alone(sent: list[Message], judge_lateness: bool) -> None:
    together = ReportReader(SPECS, judge_lateness=judge_lateness).decode(sent)
    alone = [ReportReader([each], judge_lateness=judge_lateness) for each in SPECS]
    of = {each.key: [message for message in sent if key_of(message) == each.key] for each in SPECS}
    apart = [decoder.decode(messages) for decoder, messages in zip(alone, of.values(), strict=True)]
    assert columns(together) == {key: each for decoded in apart for key, each in columns(decoded).items()}
    assert outcomes(together) == sum(map(outcomes, apart[1:]), outcomes(apart[0]))
    assert together.received == sum(each.received for each in apart) >= 400
    assert together.late_reports == sum(each.late_reports for each in apart)
    assert together.rejected_reports == sum(each.rejected_reports for each in apart) > 0
    assert accounting(together) == {slot: line for decoded in apart for slot, line in accounting(decoded).items()}


def test_rules_are_those_of_windows_times_and_channels() -> None:
    by_name = dict(zip((each.collection for each in SPECS), RULES, strict=True))
    assert by_name["one"] == by_name["two"] == by_name["three"]
    assert len(set(RULES)) == len(SPECS) - 2
