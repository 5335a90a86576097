from functools import partial

import numpy as np
import pytest

from benchmarks import throughput
from benchmarks.throughput import Totals, Workload, aggregate, batches, naive, run_graph, single_reports
from mechanisms.catalog import build_mechanism
from schemas.collection import MechanismName
from schemas.durations import milliseconds
from schemas.framing import report_store
from schemas.records import Counts


def counted_by_hand(workload: Workload) -> Totals:
    """Decode with the reference, and count by the definition of support."""
    mechanism = build_mechanism(workload.specs[0])
    hour = milliseconds(throughput.WINDOW)
    payloads: dict[tuple[str, int, int], list[bytes | int]] = {}
    for message in workload.messages:
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
            payloads.setdefault((record["collection"], record["version"], time // hour * hour), []).append(payload)
    return {
        key: sum((support(payload, mechanism.size) for payload in column), np.zeros(mechanism.size, np.int64)).tolist()
        for key, column in payloads.items()
    }


def support(payload: bytes | int, size: int) -> Counts:
    if isinstance(payload, int):
        return np.bincount([payload], minlength=size)
    bits: Counts = np.unpackbits(np.frombuffer(payload, np.uint8), count=size).astype(np.int64)
    return bits


@pytest.mark.parametrize("deduplicate", [False, True])
def test_both_graphs_give_the_counts_of_single_reports(deduplicate: bool) -> None:
    workload = single_reports(500, np.random.default_rng(1))
    expected = counted_by_hand(workload)
    assert run_graph(naive, workload) == expected
    assert run_graph(partial(aggregate, deduplicate=deduplicate), workload) == expected


@pytest.mark.parametrize("mechanism", ["urr", "urap"])
def test_batches_are_counted(mechanism: MechanismName, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "BATCH_SIZE", 50)
    workload = batches(mechanism, 500, np.random.default_rng(1))
    assert workload.reports == 500
    assert run_graph(partial(aggregate, deduplicate=True), workload) == counted_by_hand(workload)


def test_the_table_has_a_row_for_each_measurement() -> None:
    rng = np.random.default_rng(1)
    single = single_reports(50, rng)
    rates = throughput.measure(
        {"single": single, "urr": batches("urr", 1000, rng), "urap": batches("urap", 1000, rng)}, 1
    )
    assert len(list(throughput.table(rates))) == 2 + len(throughput.MEASUREMENTS)


def test_graphs_that_disagree_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([{("a", 1, 0): [1]}, {("a", 1, 0): [2]}])
    measurements = [throughput.Measurement(label, "single", lambda _: next(answers)) for label in ("one", "other")]
    monkeypatch.setattr(throughput, "MEASUREMENTS", measurements)
    with pytest.raises(AssertionError, match="other counts differently"):
        throughput.measure({"single": Workload((), [], 1)}, 1)
