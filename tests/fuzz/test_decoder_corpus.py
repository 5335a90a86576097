"""Every input of the corpus, without a fuzzer; and that both the corpus and the check are good for something."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz.decoder import HOUR, SPECS, START, bound, check, decode_fast, frame, messages, peak
from tests.fuzz.seeds import FOLDER, seeds
from uldp.collector import parse
from uldp.collector.reader import Decoded, ReportReader
from uldp.schemas.arrays import Rows
from uldp.schemas.codec.columnar import FastRows, Layout, decode_columns
from uldp.schemas.codec.packed import Bodies
from uldp.schemas.reasons import Reason
from uldp.schemas.records import Message, Report, ReportBatch

CORPUS = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir())}
SYMBOL = SPECS[0]
REPORT = Report(*SYMBOL.key, bytes(16), START, 3).encode()


@pytest.mark.parametrize("name", CORPUS)
def test_input_breaks_nothing(name: str) -> None:
    arrivals = messages(CORPUS[name])
    assert check(CORPUS[name]) == len(arrivals)
    assert peak(arrivals) <= bound(arrivals)


def test_seeds_are_in_the_corpus() -> None:
    assert dict(seeds()).items() <= CORPUS.items()


def test_corpus_reaches_every_end_of_a_report() -> None:
    decoded = [decode_fast(messages(data)) for data in CORPUS.values()]
    # No input is long enough for a message that is too large, or for one of a thousand windows. A later step than the
    # decoder counts the reports of senders.
    assert {rejected.reason for one in decoded for rejected in one.rejected} == {*Reason} - {
        Reason.TOO_LARGE,
        Reason.TOO_MANY_WINDOWS,
        Reason.OVER_SENDER_LIMIT,
    }
    assert {(columns.collection, columns.version) for one in decoded for columns in one.columns} == {
        spec.key for spec in SPECS if not spec.retired
    }
    assert any(one.late for one in decoded)


ROWS = 2_000
TIMES = {
    "counted": np.full(ROWS, START),
    "never": np.full(ROWS, -1),
    "late, each in a slice of its own": np.arange(ROWS) * HOUR,
}


@pytest.mark.parametrize("times", TIMES)
def test_memory_is_bounded_for_a_large_batch(times: str) -> None:
    batch = ReportBatch(*SYMBOL.key, bytes(16 * ROWS), TIMES[times].tobytes(), symbols=bytes(4 * ROWS))
    arrivals = [Message(batch.encode(), START + HOUR)]
    assert peak(arrivals) <= bound(arrivals)


# The check fails when it should.


def test_a_report_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = ReportReader.decode

    def careless(self: ReportReader, arrivals: Sequence[Message]) -> Decoded:
        decoded = sound(self, arrivals)
        del decoded.rejected[:1]
        return decoded

    monkeypatch.setattr(ReportReader, "decode", careless)
    assert check(frame(REPORT)) == 1
    with pytest.raises(AssertionError):
        check(frame(REPORT) + frame(b"junk"))


def test_decoders_that_disagree_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(data: Bodies, layouts: Sequence[Layout]) -> tuple[list[FastRows], Rows]:
        found, rest = decode_columns(data, layouts)
        return [replace(fast, event_times=fast.event_times - HOUR) for fast in found], rest

    monkeypatch.setattr(parse, "decode_columns", early)
    assert check(frame(REPORT[:-1])) == 1  # left to the plain decoder
    with pytest.raises(AssertionError, match="!="):
        check(frame(REPORT[:-1]) + frame(REPORT))
