"""The graphs that are measured: each counts all that it is given."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks import graphs, workloads
from benchmarks.graphs import Totals, aggregate, keyed, naive, presummed, run_graph, source
from benchmarks.workloads import Workload, batches, singles
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.arrays import Counts
from uldp.schemas.framing import report_store
from uldp.schemas.specs.durations import milliseconds


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CHUNK", 200)
    monkeypatch.setattr(workloads, "BATCH_SIZE", 50)
    monkeypatch.setattr(workloads, "POOL", 100)


def counted_by_hand(workload: Workload) -> Totals:
    """Decode with the reference, and count by the definition of support."""
    mechanism = build_protocol(workload.specs[0]).mechanism
    hour = milliseconds(workloads.WINDOW)
    totals: dict[tuple[str, int, int], Counts] = {}
    for message in workload.messages():
        name, record = report_store().decode(message.data)
        if name == "uldp.Report":
            times, column = [record["event_time"]], [record["payload"]]
        else:
            times = np.frombuffer(record["event_times"], np.int64).tolist()
            kind, packed = next(iter(record["payload"].items()))
            if kind == "symbols":
                column = np.frombuffer(packed, np.uint32).tolist()
            else:
                column = np.frombuffer(packed, f"V{len(packed) // len(times)}").tolist()
        for time, payload in zip(times, column, strict=True):
            key = record["collection"], record["version"], time // hour * hour
            totals[key] = totals.get(key, np.zeros(mechanism.size, np.int64)) + support(payload, mechanism.size)
    return {key: counts.tobytes() for key, counts in totals.items()}


def support(payload: bytes | int, size: int) -> Counts:
    if isinstance(payload, int):
        return np.bincount([payload], minlength=size)
    return np.unpackbits(np.frombuffer(payload, np.uint8), count=size).astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["urr", "urap"])
def test_all_graphs_give_the_counts_of_single_reports(mechanism: str) -> None:
    workload = singles(mechanism, 400)
    expected = counted_by_hand(workload)
    for by_messages in (naive, keyed, presummed):
        assert run_graph(by_messages, workload).totals == expected
    for deduplicate, one_by_one in itertools.product((False, True), repeat=2):
        graph = partial(aggregate, deduplicate=deduplicate, one_by_one=one_by_one)
        assert run_graph(graph, workload).totals == expected


@pytest.mark.parametrize("mechanism", ["urr", "urap", "oue"])
def test_batches_are_counted(mechanism: str) -> None:
    workload = batches(mechanism, 400)
    assert run_graph(partial(aggregate, deduplicate=True), workload).totals == counted_by_hand(workload)


def test_deduplication_is_what_it_is_asked_for() -> None:
    workload = singles("urr", 400)
    twice = replace(workload, chunk=lambda _: workload.chunk(0))
    for deduplicate, counted in ((False, 400), (True, 200)):
        totals = run_graph(partial(aggregate, deduplicate=deduplicate), twice).totals
        assert sum(np.frombuffer(counts, np.int64).sum() for counts in totals.values()) == counted


def test_making_the_messages_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(graphs, "clock", lambda: float(next(ticks)))
    # Each of 3 chunks takes one tick, and there is one from the end of each step to the beginning of the next.
    assert run_graph(source, singles("urr", 600)).seconds == 4


def test_the_source_alone_counts_nothing() -> None:
    assert run_graph(source, singles("urr", 200)).totals == {}


@pytest.mark.parametrize("make", [singles, batches])
def test_a_workload_holds_as_many_reports_as_it_says_and_the_same_every_time(make: partial[Workload]) -> None:
    workload = make("urr", 500, collections=12, size=20)
    assert workload.reports == 600  # whole chunks
    assert len(workload.specs) == 12
    assert all(spec.size == 20 for spec in workload.specs)
    assert list(workload.messages()) == list(workload.messages())
    counted = counted_by_hand(workload)
    assert {collection for collection, _, _ in counted} == {spec.collection for spec in workload.specs}
    assert sum(np.frombuffer(counts, np.int64).sum() for counts in counted.values()) == workload.reports


def test_messages_of_single_reports_are_as_long_as_the_benchmark_says() -> None:
    lengths = {len(message.data) for message in singles("urr", 200).messages()}
    assert 45 <= min(lengths) <= max(lengths) <= 63


def test_another_window_leaves_the_messages_alone() -> None:
    workload = singles("urr", 200)
    daily = workload.windowed(size=workloads.WINDOW * 24, period=workloads.WINDOW)
    assert {spec.window.period for spec in daily.specs} == {workloads.WINDOW}
    assert list(daily.messages()) == list(workload.messages())
