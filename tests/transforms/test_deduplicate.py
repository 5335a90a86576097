"""A report is counted once: against a Python set, on a pipeline, and through expiry, failure and restart."""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.coders import TupleCoder, VarIntCoder
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import HOUR, START
from tests.transforms.bags import Bag, Cell, Hash, Timer, held
from uldp.collector import seen
from uldp.collector.columns import MixedColumns, ReportColumns
from uldp.collector.hashing import hash_key, hash_words, mask_of
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.coders import MixedColumnsCoder
from uldp.transforms.deduplicate import DeduplicateReports, _DeduplicateFn
from uldp.transforms.remembered import BAGS

#: Of a report of the first hour: it closes half an hour after its window ends.
EXPIRY = START + HOUR + HOUR // 2

SPECS = [
    build.spec(collection=name, version=version, window={"size": "1h", "allowed_lateness": "30m"})
    for name, version in (("a", 1), ("a", 2), ("b", 1))
]


def columns(ids: Iterable[int], hour: int | Iterable[int] = 0, spec: CollectionSpec = SPECS[0]) -> ReportColumns:
    """Reports of these ids, of one slice or of one each; the symbol says the position, so that it can be told apart."""
    numbers = list(ids)
    symbols = np.arange(len(numbers), dtype=np.uint32) % 4
    return build.columns([(number, 7) for number in numbers], START + HOUR * np.array(hour), symbols, key=spec.key)


def mixed(*parts: ReportColumns) -> MixedColumns:
    """One element of all of these."""
    return MixedColumns(parts)


def rows(element: MixedColumns) -> Iterator[tuple[str, int, int, int, int]]:
    """Collection, version, id, hour and symbol of each report."""
    for part in element:
        ids, hours = part.report_ids[:, 0].tolist(), ((part.slices - START) // HOUR).tolist()
        for id_, hour, symbol in zip(ids, hours, part.payloads.tolist(), strict=True):
            yield part.collection, part.version, id_, hour, symbol


def accounted(element: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[tuple[Any, int]]:
    """Collection and version, and the hour of each duplicate."""
    key, partial = element
    n = partial.accounting.duplicate
    assert partial.cells is None
    assert partial.accounting == Accounting(received=n, duplicate=n)
    hour, rest = divmod(timestamp.micros // 1000 - START, HOUR)
    assert rest == HOUR - 1
    yield from [(key, hour)] * n


Element = tuple[int, MixedColumns]


def moment(milliseconds: int) -> Timestamp:
    return Timestamp(micros=milliseconds * 1000)


def scripted(*events: int | ReportColumns) -> ScriptedStream:
    """Elements of one shard, each a bundle, and in between where the watermark goes, in milliseconds."""
    stream = ScriptedStream(coder=TupleCoder((VarIntCoder(), MixedColumnsCoder())))
    for event in events:
        if isinstance(event, int):
            stream.advance_watermark_to(moment(event))
        else:
            stream.add_elements([(0, mixed(event))])
    stream.advance_watermark_to_infinity()
    stream.with_output_types(Element)
    return stream


def assert_stream(*events: int | ReportColumns, kept: list[tuple[int, int]], duplicates: list[int]) -> None:
    """Play events; the reports that are kept (id and hour) and the hours of the duplicates must be these."""
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        found = pipeline | scripted(*events) | DeduplicateReports(SPECS)
        ids = found.columns | beam.FlatMap(rows) | beam.Map(lambda row: (row[2], row[3]))
        assert_that(ids, equal_to(kept), "Kept")
        hours = [(("a", 1), hour) for hour in duplicates]
        assert_that(found.accounting | beam.FlatMap(accounted), equal_to(hours), "Accounted")


def test_copies_in_other_bundles_and_other_windows_are_dropped() -> None:
    assert_stream(
        START,
        columns([1, 2]),
        columns([2, 3]),  # another bundle
        columns([1, 4], 1),  # another window: a device whose clock was set between two attempts
        START + HOUR + 1,
        columns([1, 3, 5], [0, 1, 0]),  # after the window has fired
        kept=[(1, 0), (2, 0), (3, 0), (4, 1), (5, 0)],
        duplicates=[0, 1, 0, 1],
    )


@pytest.mark.parametrize(("watermark", "copies"), [(EXPIRY - 1, 0), (EXPIRY, 1)])
def test_an_id_is_forgotten_when_its_last_window_closes(watermark: int, copies: int) -> None:
    # Decoding calls such a copy late, so that it never comes this far; here it shows what the state still holds.
    assert_stream(
        START, columns([1]), watermark, columns([1]), kept=[(1, 0)] * (1 + copies), duplicates=[0] * (1 - copies)
    )


# What a worker keeps in memory is only ever as good as the state.


class Shard:
    """All state of one shard. A copy is what a runner goes back to when a bundle fails."""

    def __init__(self) -> None:
        self.bags, self.token, self.timer = [Bag() for _ in range(BAGS)], Cell(), Timer()


class Worker:
    """One process of a deduplicating stage."""

    def __init__(self) -> None:
        self.fn = _DeduplicateFn(SharedSpecs(SPECS), forgets=True)
        self.fn.setup()

    def forgets(self, shard: Shard, now: int) -> None:
        """Fire the timer, in milliseconds."""
        self.fn.forget(0, moment(now), shard.token, shard.timer, *shard.bags)

    def keeps(self, shard: Shard, ids: Iterable[int], hour: int | Iterable[int] = 0) -> list[int]:
        """Process one element; the ids that are new."""
        outputs = list(self.fn.process((0, mixed(columns(ids, hour))), shard.token, shard.timer, *shard.bags))
        return [row[2] for output in outputs if isinstance(output, MixedColumns) for row in rows(output)]


def test_a_worker_that_gets_its_shard_back_sees_what_others_added() -> None:
    shard, first, second = Shard(), Worker(), Worker()
    assert first.keeps(shard, [1]) == [1]
    assert second.keeps(shard, [1, 2]) == [2]
    assert first.keeps(shard, [1, 2, 3]) == [3]


def test_a_bundle_that_was_undone_counts_when_it_comes_again() -> None:
    shard, worker = Shard(), Worker()
    assert worker.keeps(shard, [1]) == [1]
    before = copy.deepcopy(shard)
    assert worker.keeps(shard, [2]) == [2]
    assert worker.keeps(before, [2]) == [2]
    assert worker.keeps(before, [1, 2]) == []


@pytest.fixture
def small_bags(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ids fill a bag."""
    monkeypatch.setattr(seen, "FILL", 2)


def numbers_of(shard: Shard, hashes: Iterable[Hash]) -> list[int]:
    """The numbers of the ids with these hashes, by the secret in the shard's state."""
    assert shard.token.value is not None
    numbers = np.arange(100, dtype=np.uint64)
    low, high = mask_of("a")
    words, _ = hash_words(hash_key(shard.token.value[:16]), numbers ^ low, np.full(100, 7, dtype=np.uint64) ^ high)
    return [words.tolist().index(first) for (first,) in hashes]


@pytest.mark.usefixtures("small_bags")
def test_a_shard_fills_one_bag_and_then_the_next() -> None:
    shard, worker = Shard(), Worker()
    n = len(shard.bags)
    for id_ in range(2 * n + 1):
        assert worker.keeps(shard, [id_]) == [id_]
    found = [[number for hashes in held(bag).values() for number in numbers_of(shard, hashes)] for bag in shard.bags]
    assert found == [[0, 1, 2 * n], *([2 * bag, 2 * bag + 1] for bag in range(1, n))]
    assert Worker().keeps(shard, range(2 * n + 3)) == [2 * n + 1, 2 * n + 2]


def test_the_timer_is_set_to_the_next_expiry_when_that_changes() -> None:
    shard, worker = Shard(), Worker()
    worker.keeps(shard, [1], hour=1)
    worker.keeps(shard, [2], hour=2)
    worker.keeps(shard, [3], hour=0)
    worker.forgets(shard, EXPIRY)
    worker.forgets(shard, EXPIRY + HOUR)
    worker.forgets(shard, EXPIRY + 2 * HOUR)
    assert shard.timer.times == [EXPIRY + HOUR, EXPIRY, EXPIRY + HOUR, EXPIRY + 2 * HOUR]


def test_a_worker_that_forgets_reads_no_state_again() -> None:
    shard, worker = Shard(), Worker()
    worker.keeps(shard, [1, 2])
    worker.keeps(shard, [3, 4], hour=1)
    worker.forgets(shard, EXPIRY)
    reads = [bag.reads for bag in shard.bags]
    # The one bag is of two hours, so the shard reads it to write the second hour anew.
    assert reads == [1] + [0] * (BAGS - 1)
    assert worker.keeps(shard, [1, 3, 5], hour=1) == [1, 5]
    assert [bag.reads for bag in shard.bags] == reads
    worker.forgets(shard, EXPIRY + HOUR)
    assert [bag.reads for bag in shard.bags] == reads
    assert all(not bag.entries for bag in shard.bags)
    assert shard.token.value is None


def test_an_id_that_came_again_after_its_expiry_is_kept_as_long_as_its_last_window() -> None:
    shard, worker = Shard(), Worker()
    assert worker.keeps(shard, range(1)) == [0]
    for hour, ids in ((1, range(1, 40)), (2, range(40, 80))):
        worker.keeps(shard, ids, hour)
    # One in eighty has expired: too little to free the bag of it. The worker has it no more.
    worker.forgets(shard, EXPIRY)
    assert len(held(shard.bags[0])[EXPIRY]) == 1
    assert worker.keeps(shard, [0], hour=2) == [0]
    # Another worker finds it twice in state.
    taken_over = Worker()
    assert taken_over.keeps(shard, [0, 80], hour=2) == [80]
    taken_over.forgets(shard, EXPIRY + HOUR)
    assert taken_over.keeps(shard, range(81), hour=2) == list(range(1, 40))


def secret_of(shard: Shard) -> bytes | None:
    return None if shard.token.value is None else shard.token.value[:16]


def test_the_secret_of_a_shard_stays_until_nothing_is_left() -> None:
    shard, found = Shard(), []
    for ids, hour in (([1], 0), ([1, 2], 1), ([3], 1)):
        Worker().keeps(shard, ids, hour)
        found.append(secret_of(shard))
    worker = Worker()
    worker.forgets(shard, EXPIRY)
    assert [*found, secret_of(shard)] == [found[0]] * 4
    worker.forgets(shard, EXPIRY + HOUR)
    assert secret_of(shard) is None
    other = Shard()
    for fresh in (shard, other):
        worker.keeps(fresh, [1])
    assert len({found[0], secret_of(shard), secret_of(other)}) == 3


def test_forgetting_that_was_undone_leaves_what_there_was() -> None:
    shard, worker = Shard(), Worker()
    worker.keeps(shard, [1])
    worker.keeps(shard, [2], hour=1)
    before = copy.deepcopy(shard)
    worker.forgets(shard, EXPIRY)
    assert worker.keeps(before, [1, 2, 3]) == [3]


@pytest.mark.usefixtures("small_bags")
def test_ids_are_forgotten_in_every_bag() -> None:
    ids = range(2 * BAGS)
    assert_stream(
        START,
        *(columns([id_], id_ % 2) for id_ in ids),
        EXPIRY,
        *(columns([id_], id_ % 2) for id_ in ids),
        EXPIRY + HOUR,
        *(columns([id_], 1) for id_ in ids if id_ % 2),
        kept=[(id_, id_ % 2) for id_ in (*ids, *ids)],
        duplicates=[1] * (len(ids) // 2),
    )
