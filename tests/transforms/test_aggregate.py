"""The whole transform: panes, windows and accounting on a stream that the test writes event by event."""

from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from mechanisms.catalog import build_mechanism
from pipelines.results import read_counts, read_estimates
from schemas.collection import CollectionSpec
from schemas.records import Accounting, Message, Report, SupportCounts
from transforms.aggregate import Aggregate
from transforms.coders import MessageCoder
from transforms.sinks import WriteResults

START = 1_767_603_600_000  # 2026-01-05T09:00:00Z
MINUTE = 60_000
HOUR = 60 * MINUTE


def make_spec(collection: str = "plain", **changes: object) -> CollectionSpec:
    base: dict[str, object] = {
        "collection": collection,
        "version": 1,
        "domain": {"size": 4},
        "mechanism": {"name": "rr", "epsilon": 2.0},
        "window": {"size": "1h", "early_every": "10s", "allowed_lateness": "30m"},
    }
    return CollectionSpec.parse(base | changes)


PLAIN = make_spec()


def report(number: int, minute: float, *, published: float | None = None, spec: CollectionSpec = PLAIN) -> Message:
    """Report ``number`` names its own symbol, so that a double count shows."""
    at = START + int(minute * MINUTE)
    data = Report(*spec.key, number.to_bytes(16, "big"), at, number % spec.size).encode()
    return Message(data, at if published is None else START + int(published * MINUTE))


def at(minute: float) -> Timestamp:
    return Timestamp(micros=(START + int(minute * MINUTE)) * 1000)


def new_stream() -> ScriptedStream:
    stream: ScriptedStream = ScriptedStream(coder=MessageCoder()).advance_watermark_to(at(0)).with_output_types(Message)
    return stream


def run(stream: ScriptedStream, specs: Sequence[CollectionSpec], out: Path, **settings: bool) -> list[SupportCounts]:
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        _ = pipeline | stream | Aggregate(specs, **settings) | WriteResults(str(out))
    return sorted(read_counts(out), key=lambda pane: (pane.collection, pane.window_start, pane.pane.revision))


def kinds(panes: Sequence[SupportCounts]) -> list[tuple[str, int, int]]:
    return [(pane.pane.kind.value, pane.pane.revision, pane.n) for pane in panes]


def test_early_on_time_and_late_panes_accumulate(tmp_path: Path) -> None:
    stream = (
        new_stream()
        .add_elements([report(0, 5), report(1, 6)])
        .advance_processing_time(11)
        .add_elements([report(2, 30)])
        .advance_processing_time(11)
        .add_elements([report(3, 50)])
        .advance_watermark_to(at(60))
        .add_elements([report(4, 59, published=61)])
        .advance_watermark_to(at(62))
        .add_elements([report(5, 58, published=63)])
        .advance_watermark_to_infinity()
    )
    panes = run(stream, [PLAIN], tmp_path)
    assert kinds(panes) == [("early", 0, 2), ("early", 1, 3), ("on_time", 2, 4), ("late", 3, 5), ("late", 4, 6)]
    assert panes[-1].counts.tolist() == [2, 2, 1, 1]


def test_a_window_has_its_on_time_pane_though_nothing_came_since_the_early_one(tmp_path: Path) -> None:
    stream = new_stream().add_elements([report(0, 5)]).advance_processing_time(11).advance_watermark_to_infinity()
    assert kinds(run(stream, [PLAIN], tmp_path)) == [("early", 0, 1), ("on_time", 1, 1)]


def test_late_reports_amend_the_accounting_of_their_window_and_no_count(tmp_path: Path) -> None:
    stream = (
        new_stream()
        .add_elements([report(0, 5)])
        .advance_watermark_to(at(90))
        .add_elements([report(1, 59, published=90), report(0, 5, published=90)])
        .advance_watermark_to_infinity()
    )
    panes = run(stream, [PLAIN], tmp_path)
    assert kinds(panes)[0] == ("on_time", 0, 1)
    assert panes[-1].counts.tolist() == panes[0].counts.tolist()
    assert panes[-1].accounting == Accounting(received=3, counted=1, late=2)


def test_the_first_report_ever_of_a_closed_window_is_late(tmp_path: Path) -> None:
    stream = (
        new_stream()
        .advance_watermark_to(at(200))
        .add_elements([report(0, 5, published=200)])
        .advance_watermark_to_infinity()
    )
    (pane,) = run(stream, [PLAIN], tmp_path)
    assert pane.accounting == Accounting(received=1, late=1)
    assert not (tmp_path / "estimates").exists()  # nothing to estimate from, and no NaN


def test_copies_are_counted_once_in_other_bundles_and_in_other_windows(tmp_path: Path) -> None:
    """A device whose clock jumps resends the report with another event time: still one report."""
    stream = (
        new_stream()
        .add_elements([report(0, 59), report(1, 59)])
        .add_elements([report(0, 59)])
        .add_elements([report(1, 61, published=61)])
        .advance_watermark_to_infinity()
    )
    first, second = run(stream, [PLAIN], tmp_path)
    assert first.accounting == Accounting(received=3, counted=2, duplicate=1)
    assert second.accounting == Accounting(received=1, duplicate=1)


def test_without_deduplication_every_report_counts(tmp_path: Path) -> None:
    stream = new_stream().add_elements([report(0, 5), report(0, 5)]).advance_watermark_to_infinity()
    (pane,) = run(stream, [PLAIN], tmp_path, deduplicate=False)
    assert pane.accounting == Accounting(received=2, counted=2)


def test_a_rejected_report_stands_in_the_line_of_the_window_that_it_named(tmp_path: Path) -> None:
    wrong = Message(Report(*PLAIN.key, b"x" * 16, START + MINUTE, 4).encode(), START + MINUTE)
    nameless = Message(b"no report", START + MINUTE)
    stream = new_stream().add_elements([report(0, 5), wrong, nameless]).advance_watermark_to_infinity()
    (pane,) = run(stream, [PLAIN], tmp_path)
    assert pane.accounting == Accounting(received=2, counted=1, rejected=1)


def test_collections_have_windows_of_their_own(tmp_path: Path) -> None:
    daily = make_spec("daily", window={"size": "1d"})
    newer = make_spec(version=2, mechanism={"name": "rr", "epsilon": 1.0})
    stream = (
        new_stream()
        .add_elements([report(0, 5), report(1, 6, spec=daily), report(2, 7, spec=newer), report(3, 65, spec=daily)])
        .advance_watermark_to_infinity()
    )
    panes = run(stream, [PLAIN, daily, newer], tmp_path)
    found = [(pane.collection, pane.version, pane.window_end - pane.window_start, pane.n) for pane in panes]
    assert found == [("daily", 1, 24 * HOUR, 2), ("plain", 1, HOUR, 1), ("plain", 2, HOUR, 1)]


@pytest.mark.parametrize(("limit", "published"), [(3, 1), (4, 0)])
def test_below_min_reports_counts_are_kept_and_no_estimate_is_published(
    limit: int, published: int, tmp_path: Path
) -> None:
    spec = make_spec(limits={"min_reports": limit})
    stream = new_stream().add_elements([report(n, 5) for n in range(3)]).advance_watermark_to_infinity()
    (pane,) = run(stream, [spec], tmp_path)
    assert pane.n == 3
    assert len(list(tmp_path.glob("estimates/*/*/*.avro"))) == published


@pytest.mark.parametrize(("limit", "flags"), [(0.25, ()), (0.24, ("rejected_ratio",))])
def test_too_many_rejected_reports_flag_the_estimate(limit: float, flags: tuple[str, ...], tmp_path: Path) -> None:
    spec = make_spec(limits={"max_rejected_ratio": limit})
    wrong = Message(Report(*PLAIN.key, b"x" * 16, START + MINUTE, 4).encode(), START + MINUTE)
    stream = new_stream().add_elements([report(n, 5) for n in range(3)] + [wrong]).advance_watermark_to_infinity()
    run(stream, [spec], tmp_path)
    (estimate,) = read_estimates(tmp_path)
    assert estimate.flags == flags


def test_every_estimator_of_a_spec_is_published(tmp_path: Path) -> None:
    estimators = ["empirical", "threshold", "norm-sub", "mle", "em"]
    spec = make_spec(estimator=estimators)
    stream = new_stream().add_elements([report(n, 5) for n in range(8)]).advance_watermark_to_infinity()
    run(stream, [spec], tmp_path)
    estimates = read_estimates(tmp_path)
    assert sorted(estimate.estimator for estimate in estimates) == sorted(estimators)
    channel = build_mechanism(spec).channel
    for estimate in estimates:  # two reports of each of four symbols: every estimator sees the uniform distribution
        np.testing.assert_allclose(estimate.distribution, 0.25, atol=1e-6)
        np.testing.assert_allclose(estimate.stderr, np.sqrt(channel.variance(np.full(4, 0.25), 8)))


def test_wrong_arguments_are_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="no collection spec"):
        Aggregate([])
    with pytest.raises(ValueError, match="two specs for plain version 1"):
        Aggregate([PLAIN, PLAIN])
    with pytest.raises(ValueError, match="shards must be 1 or more, got 0"):
        Aggregate([PLAIN], shards=0)
