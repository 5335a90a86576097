from collections.abc import Callable
from functools import partial

import pytest

from benchmarks import throughput, workloads
from benchmarks.graphs import Run
from benchmarks.throughput import MEASUREMENTS, WORKLOADS, Measurement, count_alone, decode_alone, rates
from benchmarks.workloads import Workload, batches, singles
from transforms.columnar import Layout, decode_columns

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
def test_a_rate_is_reports_by_the_median_of_seconds() -> None:
    seconds = iter([5.0, 1.0, 2.0])
    measured = rates([Measurement("it", "symbols", lambda _: Run({}, next(seconds)))], 1, 3)
    assert measured == {"it": 1000 / 2.0}


@pytest.mark.usefixtures("made")
def test_graphs_that_disagree_are_an_error() -> None:
    measurements = [Measurement(label, "symbols", constant(1, label.encode())) for label in ("one", "other")]
    with pytest.raises(AssertionError, match="other counts differently"):
        rates(measurements, 1, 1)


@pytest.mark.usefixtures("made")
def test_rows_compare_with_the_naive_graph_and_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "alone", lambda *_: (None, 7.0))
    monkeypatch.setattr(
        throughput,
        "MEASUREMENTS",
        [
            Measurement("slow", "symbols", constant(8)),
            Measurement("limit", "symbols", constant(1)),
            Measurement(throughput._DAYS, "symbols", constant(2), "slow", "limit"),
            Measurement(throughput._SLIDING, "symbols", constant(3), "slow", "limit"),
        ],
    )
    slow, limit, days, sliding = throughput.rows()
    assert (slow.naive, slow.limit, slow.megabytes, limit.megabytes) == (None, None, 7.0, None)
    assert (days.n, days.seconds, days.naive, days.limit) == (1000, 2, 4, 0.5)
    assert sliding.remark == "1.50 times the cost of windows of a day"


def test_every_measurement_has_a_label_of_its_own_and_what_it_is_compared_with() -> None:
    labels = [measurement.label for measurement in MEASUREMENTS]
    assert len(set(labels)) == len(labels)
    for measurement in MEASUREMENTS:
        assert measurement.workload in WORKLOADS
        assert {measurement.naive, measurement.limit} <= {*labels, None}


def test_the_limits_take_what_the_graph_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "CHUNK", 200)
    monkeypatch.setattr(workloads, "POOL", 100)
    decoded: list[int] = []

    def decode(messages: list[bytes], layouts: list[Layout]) -> object:
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
        "build_mechanism",
        lambda _: type("Counting", (), {"support": lambda _, pool: counted.append(len(pool))})(),
    )
    count_alone(workload)
    assert sum(counted) == 400
