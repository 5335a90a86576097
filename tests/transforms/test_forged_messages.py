"""Messages of somebody who may publish and lies: docs/threats.md says these things, and these tests hold them."""

from collections.abc import Sequence
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.utils.timestamp import Timestamp

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.pipelines.results.samples import folder_of
from uldp.collector.signals import digest_of_day, sender_digest
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting
from uldp.schemas.records import SENDER, Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.coders import MessageCoder
from uldp.transforms.io.results.write import WriteResults

#: A symbol that the domain does not have.
NO_SYMBOL = 9


def spec(version: int = 1, **limits: object) -> CollectionSpec:
    window = {"size": "1h", "allowed_lateness": "30m"}
    return build.spec(version=version, mechanism={"name": "rr", "epsilon": 1.0}, window=window, limits=limits)


def sent(number: int, symbol: int, minute: int = 0, *, published: int | None = None, version: int = 1) -> Message:
    """Report ``number``; its time and its publish time are minutes behind the window's start."""
    report = build.report(number, symbol, START + minute * MINUTE, ("c", version))
    return build.message(report, START + (minute if published is None else published) * MINUTE)


def run(out: Path, specs: Sequence[CollectionSpec], *bundles: Sequence[Message] | int) -> list[Statistic]:
    """Return the panes, by window and revision, after bundles of messages and minutes to which the watermark goes."""
    stream: ScriptedStream = ScriptedStream(coder=MessageCoder()).with_output_types(Message)
    for bundle in bundles:
        if isinstance(bundle, int):
            stream.advance_watermark_to(Timestamp(micros=(START + bundle * MINUTE) * 1000))
        else:
            stream.add_elements(list(bundle))
    stream.advance_watermark_to_infinity()
    with beam.Pipeline("BundleBasedDirectRunner", options=PipelineOptions(["--streaming"])) as pipeline:
        _ = pipeline | stream | Aggregate(specs, sender_key=build.SENDER_KEY) | WriteResults(str(out))
    return sorted(
        ResultsFolder(out).statistics(), key=lambda pane: (pane.version, pane.window_start, pane.pane.revision)
    )


def test_whoever_sends_the_id_of_a_report_first_takes_its_place_without_a_flag(tmp_path: Path) -> None:
    forged, honest = [sent(n, 4) for n in range(3)], [sent(n, 1) for n in range(3)]
    (pane,) = run(tmp_path, [spec(max_rejected_ratio=0.01)], forged, honest)
    assert pane.accounting == Accounting(received=6, counted=3, duplicate=3)
    assert (pane.cells.tolist(), pane.flags) == ([0, 0, 0, 0, 3], ())


def test_an_id_may_be_taken_through_another_version_and_in_another_window(tmp_path: Path) -> None:
    other_version, other_window = sent(1, 4, version=2), sent(2, 4, 65, published=58)
    honest = [sent(1, 1, 59), sent(2, 1, 59), sent(3, 1, 59)]
    counted = run(tmp_path, [spec(), spec(version=2)], [other_version, other_window], honest)
    assert [(pane.version, (pane.window_start - START) // HOUR, pane.accounting) for pane in counted] == [
        (1, 0, Accounting(received=3, counted=1, duplicate=2)),
        (1, 1, Accounting(received=1, counted=1)),
        (2, 0, Accounting(received=1, counted=1)),
    ]


def test_an_id_is_not_taken_by_a_report_that_is_rejected_or_late(tmp_path: Path) -> None:
    late = sent(2, 4, -60, published=31)
    panes = run(tmp_path, [spec()], 0, [sent(1, NO_SYMBOL), late], [sent(1, 1, 31), sent(2, 1, 31)])
    assert panes[-1].accounting == Accounting(received=3, counted=2, rejected=1)


def test_a_rejected_report_counts_as_often_as_it_is_sent(tmp_path: Path) -> None:
    """So one message, sent again and again, has a collection withhold its estimates."""
    stopping = spec(max_rejected_ratio=0.02, when_exceeded="stop")
    honest = [sent(n, n % 5) for n in range(97)]
    (below,) = run(tmp_path / "below", [stopping], [*honest, sent(99, NO_SYMBOL)])
    (above,) = run(tmp_path / "above", [stopping], [*honest, *[sent(99, NO_SYMBOL)] * 2])
    assert (below.flags, above.flags) == ((), ("rejected_ratio",))
    assert above.accounting == Accounting(received=99, counted=97, rejected=2)
    assert [len(ResultsFolder(tmp_path / name).estimates()) for name in ("below", "above")] == [1, 0]


def test_a_day_after_a_window_has_closed_a_rejected_report_can_still_flag_it(tmp_path: Path) -> None:
    stopping = spec(max_rejected_ratio=0.02, when_exceeded="stop")
    closed, day = 90, 24 * 60
    forged = sent(99, NO_SYMBOL, 0, published=closed + day - 1)
    panes = run(tmp_path, [stopping], [sent(n, 1) for n in range(10)], closed, [forged])
    assert [(pane.n, pane.flags) for pane in panes] == [(10, ()), (10, ("rejected_ratio",))]
    assert len(ResultsFolder(tmp_path).estimates()) == 1
    published, unpublished, *_ = folder_of(tmp_path, specs={stopping.key: stopping}).current()
    assert (published, [pane.window_start for pane in unpublished]) == ([], [START])
    after = forged._replace(publish_time=forged.publish_time + MINUTE)
    panes = run(tmp_path / "after", [stopping], [sent(n, 1) for n in range(10)], closed, [after])
    assert [(pane.n, pane.flags) for pane in panes if pane.window_start == START] == [(10, ())]


@pytest.mark.parametrize(
    ("keys", "busiest"), [(["gateway"] * 5, "gateway"), ([f"made up {n}" for n in range(5)], None)]
)
def test_a_sender_writes_its_key_itself(keys: list[str], busiest: str | None, tmp_path: Path) -> None:
    """So it can put its reports on the account of another, or have a key for each report and be never busy."""
    forged = [sent(n, 4)._replace(attributes={SENDER: key}) for n, key in enumerate(keys)]
    (pane,) = run(tmp_path, [spec(max_reports_per_sender=4)], forged)
    assert pane.flags == (("busy_sender",) if busiest else ())
    assert pane.signals.busiest_sender is not None
    if busiest:
        assert pane.signals.busiest_sender.digest == digest_of_day(sender_digest(busiest, build.SENDER_KEY), START)
