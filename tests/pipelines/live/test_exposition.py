"""Metrics say what the results say, and no counter falls."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")
from prometheus_client.parser import text_string_to_metric_families as parsed

from tests.build import HOUR, START
from tests.pipelines.results.samples import ESTIMATE, at, folder_of, save
from uldp.pipelines.live.exposition import METRICS, Exposition
from uldp.pipelines.live.figures import collections_of
from uldp.pipelines.live.position import Position, now_ms
from uldp.pipelines.live.served import Served
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.records import Missing
from uldp.schemas.rejected import count_reasons
from uldp.transforms.io.durable_files import container_bytes, encode_record, write_file


def samples(exposition: Exposition) -> Mapping[tuple[str, ...], float]:
    """Each sample by its name and the values of its labels, but that of the folder."""
    return {
        (each.name, *(each.labels[label] for label in METRICS[family.name][1])): each.value
        for family in parsed(exposition.text().decode())
        for each in family.samples
    }


def counters(found: Mapping[tuple[str, ...], float]) -> Mapping[tuple[str, ...], float]:
    return {key: value for key, value in found.items() if key[0].endswith("_total")}


def watched(path: Path, name: str = "results") -> Served:
    served = Served.of(name, path)
    served.watch.least, served.watch.share = 0.0, 1.0
    return served


def exposition_of(*folders: Served, position: Position | None = None) -> Exposition:
    return Exposition(folders, lambda _: position, lambda _: position is not None)


def test_reports_are_those_of_the_results(backfilled: Path) -> None:
    found = samples(exposition_of(watched(backfilled)))
    folder = ResultsFolder(backfilled)
    key = ("manhattan-checkins", "1")
    of_windows = Accounting()
    for pane in folder.panes():
        of_windows += pane.accounting
    assert of_windows.rejected > 0
    for outcome in ("counted", "duplicate", "late", "rejected"):
        assert found["uldp_reports_total", *key, outcome] == getattr(of_windows, outcome)
    reasons = count_reasons(folder.rejected())
    assert {
        labels[0]: value for (name, *labels), value in found.items() if name == "uldp_rejected_reports_total"
    } == reasons
    assert found["uldp_windows_total", *key] == found["uldp_panes_total", *key] == 3
    assert found["uldp_last_window_end_timestamp_seconds", *key] == 1_767_614_400  # 2026-01-05T12:00:00Z
    assert found["uldp_damaged_files",] == found["uldp_job_running",] == found["uldp_missing_messages_total",] == 0


def test_every_metric_is_described_and_no_other(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, replace(ESTIMATE, flags=("incomplete",)))
    rejected = tmp_path / "rejected"
    rejected.mkdir()
    position = Position(now_ms(), 0, 1, simulated=False, watermark=START, segments=1, messages=2, ahead=3, asked=4)
    families = list(parsed(exposition_of(watched(tmp_path), position=position).text().decode()))
    assert {family.name for family in families} == METRICS.keys() - {"uldp_rejected_reports"}
    for family in families:
        counts, labels, meaning = METRICS[family.name]
        assert (family.type, family.documentation) == ("counter" if counts else "gauge", meaning)
        assert all(set(sample.labels) == {"results", *labels} for sample in family.samples)


def test_the_position_of_a_job_is_shown(tmp_path: Path) -> None:
    folder_of(tmp_path)
    position = Position(0, 0, 1, simulated=False, watermark=now_ms() - 5_000, segments=1, messages=2, ahead=3, asked=4)
    found = samples(exposition_of(watched(tmp_path), position=position))
    assert found["uldp_segments_ahead",] == 3
    assert found["uldp_messages_read_total",] == 2
    assert found["uldp_job_running",] == 1
    assert found["uldp_spec_refused",] == 0
    refused = samples(exposition_of(watched(tmp_path), position=replace(position, spec_refused=2)))
    assert refused["uldp_spec_refused",] == 2
    assert 5 <= found["uldp_watermark_lag_seconds",] < 60
    simulated = samples(exposition_of(watched(tmp_path), position=replace(position, simulated=True)))
    assert ("uldp_watermark_lag_seconds",) not in simulated


def test_a_counter_does_not_fall_when_files_go(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, at(9), at(10))
    exposition = exposition_of(watched(tmp_path))
    before = samples(exposition)
    max((tmp_path / "counts").iterdir()).unlink()
    after = samples(exposition)
    assert before["uldp_windows_total", "c", "1"] == 2
    assert counters(after) == counters(before)
    assert (
        after["uldp_last_window_end_timestamp_seconds", "c", "1"]
        < before["uldp_last_window_end_timestamp_seconds", "c", "1"]
    )
    assert samples(exposition_of(watched(tmp_path)))["uldp_windows_total", "c", "1"] == 1


def test_the_last_window_is_the_last_that_has_fired_on_time() -> None:
    panes = [
        replace(at(9), accounting=Accounting(100, 70, 0, 0, 30, 25)),
        replace(at(10), pane=Pane(PaneKind.EARLY, 1), accounting=Accounting(5, 5)),
    ]
    ((_, figures),) = collections_of(panes, {})
    assert (figures.last.window_end - START) == 10 * HOUR
    assert (figures.rejected_share, figures.missing_share) == (0.3, 0.2)
    ((_, alone),) = collections_of(panes[1:], {})
    assert (alone.last.window_end - START, alone.rejected_share) == (11 * HOUR, 0)


def test_missing_messages_count_once(tmp_path: Path) -> None:
    folder_of(tmp_path)
    lost = [Missing("t/0", 0, 6, 0, 1), Missing("t/0", 5, 9, 0, 1)]
    encoded = [encode_record("missing", each.to_avro()) for each in lost]
    write_file(str(tmp_path / "missing" / "a.avro"), container_bytes("missing", encoded))
    assert samples(exposition_of(watched(tmp_path)))["uldp_missing_messages_total",] == 10


def test_a_damaged_file_is_counted(tmp_path: Path) -> None:
    save(folder_of(tmp_path).path, at(9))
    (file,) = (tmp_path / "counts").glob("*.avro")
    file.write_bytes(b"damaged")
    assert samples(exposition_of(watched(tmp_path)))["uldp_damaged_files",] == 1


def test_folders_are_told_apart_by_hostile_names_too(tmp_path: Path) -> None:
    names = ['a"} 1\nuldp_reports_total 7 # ', "b\\"]
    for number in range(2):
        save(folder_of(tmp_path / str(number)).path, at(9))
    text = exposition_of(*(watched(tmp_path / str(number), names[number]) for number in range(2))).text().decode()
    families = list(parsed(text))
    assert {sample.labels["results"] for family in families for sample in family.samples} == set(names)
