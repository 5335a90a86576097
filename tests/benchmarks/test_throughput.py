"""The workloads of throughput."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import pytest

from benchmarks import throughput, workloads
from benchmarks.graphs import Run
from benchmarks.throughput import MEASUREMENTS, WORKLOADS, Measurement, count_alone, decode_alone, measure
from benchmarks.workloads import Workload, batches, singles
from uldp.schemas.codec.columnar import Layout, decode_columns
from uldp.schemas.codec.packed import Bodies

Make = Callable[[int], Workload]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, Make]]:
    monkeypatch.setattr(workloads, "CHUNK", 200)
    replaced: dict[str, tuple[int, Make]] = {"symbols": (1000, partial(singles, "urr"))}
    monkeypatch.setattr(throughput, "WORKLOADS", replaced)
    return replaced


def constant(seconds: float, counts: bytes = b"") -> Callable[[Workload], Run]:
    return lambda _: Run({("a", 1, 0): counts} if counts else {}, seconds)


@pytest.mark.usefixtures("made")
def test_the_median_of_seconds_counts() -> None:
    seconds = iter([5.0, 1.0, 2.0])
    measured = measure([Measurement("it", "symbols", lambda _: Run({}, next(seconds)))], 1, 3)
    assert measured == {"it": (1000, 2.0, None)}


@pytest.mark.usefixtures("made")
def test_the_last_turn_is_that_of_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "alone", lambda _, label, share: (Run({}, 4 * share), 7.0 + len(label)))
    seconds = iter([1.0, 9.0])
    measured = measure([Measurement("it", "symbols", lambda _: Run({}, next(seconds)))], 1, 3, memory=True)
    assert measured == {"it": (1000, 4.0, 9.0)}


@pytest.mark.usefixtures("made")
def test_a_process_of_its_own_runs_a_small_job_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(label: str, workload: Workload) -> Run:
        ran.append(label)
        return Run({}, float(len(ran)))

    labels = ["it", throughput.START]
    measurements = [Measurement(label, "symbols", partial(run, label)) for label in labels]
    monkeypatch.setattr(throughput, "MEASUREMENTS", measurements)
    assert throughput.run_alone("it", 1).seconds == 2
    assert ran == [throughput.START, "it"]


@pytest.mark.usefixtures("made")
def test_graphs_that_count_differently_in_the_last_turn_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "alone", lambda *_: (constant(1, b"other")(batches("urr", 200)), 7.0))
    with pytest.raises(AssertionError, match="it counts differently"):
        measure([Measurement("it", "symbols", constant(1, b"one"))], 1, 2, memory=True)


@pytest.mark.usefixtures("made")
def test_graphs_that_disagree_are_an_error() -> None:
    measurements = [Measurement(label, "symbols", constant(1, label.encode())) for label in ("one", "other")]
    with pytest.raises(AssertionError, match="other counts differently"):
        measure(measurements, 1, 1)


@pytest.mark.usefixtures("made")
def test_rows_compare_with_the_naive_graph_and_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"slow": 8.0, "faster": 4.0, "limit": 1.0, throughput._DAYS: 2.0, throughput._SLIDING: 3.0}
    monkeypatch.setattr(throughput, "alone", lambda _, label, share: (Run({}, taken[label]), 7.0))
    monkeypatch.setattr(
        throughput,
        "MEASUREMENTS",
        [
            Measurement(
                label, "symbols", constant(seconds), *(("slow", "faster", "limit") if seconds in {2, 3} else ())
            )
            for label, seconds in taken.items()
        ],
    )
    slow, _, limit, days, sliding = throughput.rows()
    assert (slow.naive, slow.keyed, slow.limit, slow.megabytes, limit.megabytes) == (None, None, None, 7.0, None)
    assert (days.n, days.seconds, days.naive, days.keyed, days.limit) == (1000, 2, 4, 2, 0.5)
    assert sliding.remark == "1.50 times the cost of windows of a day"


def test_every_measurement_has_a_label_of_its_own_and_what_it_is_compared_with() -> None:
    labels = [measurement.label for measurement in MEASUREMENTS]
    assert len(set(labels)) == len(labels)
    for measurement in MEASUREMENTS:
        assert measurement.workload in WORKLOADS
        assert {measurement.naive, measurement.keyed, measurement.limit} <= {*labels, None}


def test_the_limits_take_what_the_graph_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CHUNK", 200)
    monkeypatch.setattr(workloads, "POOL", 100)
    decoded: list[int] = []

    def decode(messages: Bodies, layouts: list[Layout]) -> object:
        found, rest = decode_columns(messages, layouts)
        decoded.append(sum(len(fast.rows) for fast in found))
        return found, rest

    monkeypatch.setattr(throughput, "decode_columns", decode)
    assert decode_alone(singles("urr", 400)).seconds > 0
    assert sum(decoded) == 400
    workload = batches("oue", 400)
    counted: list[int] = []
    monkeypatch.setattr(
        throughput,
        "build_protocol",
        lambda _: SimpleNamespace(mechanism=SimpleNamespace(statistic=lambda pool: counted.append(len(pool)))),
    )
    count_alone(workload)
    assert sum(counted) == 400
