"""What a job has signed and is not there as it was: whoever reads it names the file or the folder, and fails."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import apache_beam as beam
import pytest

from tests.fakes import memory
from tests.pane_files import file_of
from tests.pipelines.command import SPEC, Run
from uldp.pipelines.cli import main
from uldp.pipelines.jobs import local
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.newest import estimate_key
from uldp.pipelines.results.panes import ESTIMATES, PANES, Panes
from uldp.pipelines.results.signed import Signed
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message, Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregated import Aggregated
from uldp.transforms.io.durable_files import container_bytes
from uldp.transforms.io.local.journal import JOURNAL
from uldp.transforms.io.results.write import WriteResults

JOBS = ("backfill", "stream")
#: The schema of the files of each folder; no report of a backfill is late.
KINDS: Mapping[str, Panes[Any] | str] = {
    "counts": PANES,
    "estimates": ESTIMATES,
    "late": "message",
    "rejected": "rejected",
}
CASES = [(job, kind) for job in JOBS for kind in KINDS if (job, kind) != ("backfill", "late")]


def older(path: Path, kind: Panes[Any] | str, missing: int = 0) -> None:
    """Put a whole file in the place of another: with a pane of fewer reports, or without records.

    The report may be missing in it, as if the file were of a source that had lost a message.
    """
    if isinstance(kind, str):
        path.write_bytes(container_bytes(kind, []))
        return
    *others, pane = read_all(path.parents[1], kind, path)
    of = pane.accounting
    less = replace(of, received=of.received - 1, counted=of.counted - 1, missing=of.missing + missing)
    path.write_bytes(file_of([*others, replace(pane, accounting=less)], kind.folder).content)


def tear(path: Path, kind: Panes[Any] | str) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])


DAMAGES: Mapping[str, Callable[[Path, Panes[Any] | str], None]] = {
    "removed": lambda path, kind: path.unlink(),
    "of a loss": partial(older, missing=1),
    "torn": tear,
}


class Reader(NamedTuple):
    """A command, and the folders that it reads; the others it may not miss."""

    arguments: Callable[[Path], Sequence[str | Path]]
    reads: frozenset[str]


OF_PANES = frozenset({"counts", "estimates"})
READERS: Mapping[str, Reader] = {
    "show": Reader(lambda out: ("show", out), OF_PANES),
    "ask": Reader(lambda out: ("ask", out), frozenset({"counts"})),
    "export": Reader(lambda out: ("export", out, "--to", out.parent / "rows.csv"), OF_PANES),
    "report": Reader(lambda out: ("report", out, "--out", out.parent / "page.html"), OF_PANES | {"rejected"}),
    "status": Reader(lambda out: ("status", out), frozenset(KINDS)),
    "rejected": Reader(lambda out: ("rejected", out), frozenset({"rejected"})),
    "late": Reader(lambda out: ("late", out), frozenset({"late"})),
    "replay": Reader(lambda out: ("replay", out / "rejected", "--to", out.parent / "again"), frozenset({"rejected"})),
}


@pytest.fixture(scope="session")
def results(simulated: Path, backfilled: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The results of each job; tests only read them."""
    out = tmp_path_factory.mktemp("streamed") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "stream", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
        main()
    return {"backfill": backfilled, "stream": out}


@pytest.fixture
def damaged(results: Mapping[str, Path], tmp_path: Path) -> Callable[[str, str, str], tuple[Path, Path]]:
    """Damages the newest file of a folder in a copy of results; returns the copy and the file."""

    def copy(job: str, kind: str, damage: str) -> tuple[Path, Path]:
        out = tmp_path / "results"
        shutil.copytree(results[job], out)
        path = sorted((out / kind).rglob("*.avro"))[-1]
        DAMAGES[damage](path, KINDS[kind])
        return out, path

    return copy


def names(text: str, path: Path) -> bool:
    """Whether a text names a file, or its folder with a window."""
    return str(path) in text or f"{path.parent}: the newest pane" in text


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(("job", "kind"), CASES)
def test_each_reader_of_a_folder_names_what_is_lost_there(
    uldp: Run, damaged: Callable[[str, str, str], tuple[Path, Path]], job: str, kind: str, damage: str
) -> None:
    out, path = damaged(job, kind, damage)
    for name, reader in READERS.items():
        code, _, err = uldp(*reader.arguments(out))
        if kind in reader.reads:
            assert (code, names(err, path)) == (1, True), f"{name}: {err}"
        else:
            assert code == 0, f"{name}: {err}"
    code, said, _ = uldp("status", out, "--json")
    assert code == 1
    assert any(names(fault, path) for fault in json.loads(said)["faults"])


@pytest.mark.parametrize("job", JOBS)
def test_what_other_commands_change_is_not_lost(
    uldp: Run, results: Mapping[str, Path], tmp_path: Path, job: str
) -> None:
    out = shutil.copytree(results[job], tmp_path / "results")
    for command in [("prune", out, "--keep", "0s"), ("compact", out)]:
        with mock.patch("uldp.pipelines.results.compact._DAY", 0):
            assert uldp(*command)[0] == 0
        for name, reader in READERS.items():
            if name != "replay":  # uldp prune has removed the reports
                assert uldp(*reader.arguments(out))[::2] == (0, ""), name
    sorted((out / "counts").glob("*.avro"))[-1].unlink()
    assert f"{out}/counts: the newest pane of manhattan-checkins v1 from" in uldp("status", out)[2]


def run(uldp: Run, simulated: Path, out: Path | str, *options: str | Path) -> tuple[int, str, str]:
    return uldp("backfill", "--spec", SPEC, "--from", simulated, "--to", out, *options)


def test_the_same_backfill_writes_again_what_is_lost(
    uldp: Run, simulated: Path, damaged: Callable[[str, str, str], tuple[Path, Path]]
) -> None:
    out, path = damaged("backfill", "rejected", "removed")
    shutil.rmtree(out / "counts")
    assert run(uldp, simulated, out)[0] == 0
    assert path.exists()
    assert [uldp(*reader.arguments(out))[0] for reader in READERS.values()] == [0] * len(READERS)


def test_a_backfill_that_was_stopped_before_its_end_has_no_signature(
    uldp: Run, simulated: Path, results: Mapping[str, Path], tmp_path: Path
) -> None:
    out = shutil.copytree(results["backfill"], tmp_path / "results")
    not_signed = "  it has not signed its results: it has not ended, or an earlier version of uldp has written them"
    assert not_signed not in uldp("status", out)[1].splitlines()
    with mock.patch.object(local, "write_journal", side_effect=KeyboardInterrupt):
        assert run(uldp, simulated, out)[0] != 0
    sorted((out / "counts").rglob("*.avro"))[-1].unlink()
    assert uldp("ask", out)[0] == 0
    code, said, _ = uldp("status", out)
    assert (code, said.splitlines()[1]) == (0, not_signed)
    assert json.loads(uldp("status", out, "--json")[1])["signed"] is False


def test_private_files_elsewhere_are_signed(uldp: Run, simulated: Path, tmp_path: Path) -> None:
    out, private = tmp_path / "results", tmp_path / "private"
    assert run(uldp, simulated, out, "--private-to", private)[0] == 0
    path = next((private / "rejected").glob("*.avro"))
    path.unlink()
    for command in ("status", "rejected"):
        code, _, err = uldp(command, out, "--private", private)
        assert (code, f"{path}: missing" in err) == (1, True)
    assert uldp("report", out, "--out", tmp_path / "page.html")[0] == 0


def test_results_elsewhere_are_signed(uldp: Run, simulated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "FILES", {})
    assert run(uldp, simulated, "mem://results")[0] == 0
    assert uldp("ask", "mem://results")[0] == 0
    lost = sorted(url for url in memory.FILES if url.startswith("mem://results/counts/"))[-1]
    del memory.FILES[lost]
    code, _, err = uldp("ask", "mem://results")
    assert code == 1
    assert "counts: the newest pane of manhattan-checkins v1 from" in err


@pytest.mark.parametrize("number", [0, 3])
def test_a_pipeline_whose_workers_are_elsewhere_signs_in_a_step_of_its_own(
    number: int, tmp_path: Path, backfilled: Path
) -> None:
    panes = read_all(backfilled, PANES)[:number]
    estimates = read_all(backfilled, ESTIMATES)[:number]
    rejected = [Rejected("decode", "not_avro", "", (b"\x00",), {}, (0,), "s:1", 1, "0.1.0")][:number]
    with beam.Pipeline("FnApiRunner") as pipeline:
        aggregated = Aggregated(
            pipeline | "E" >> beam.Create(estimates).with_output_types(Estimate),
            pipeline | "S" >> beam.Create(panes).with_output_types(Statistic),
            pipeline | "L" >> beam.Create([]).with_output_types(Message),
            pipeline | "R" >> beam.Create(rejected).with_output_types(Rejected),
            pipeline | "M" >> beam.Create([]).with_output_types(Missing),
        )
        _ = aggregated | WriteResults(str(tmp_path), sign=True)
    signed = Signed.read(tmp_path)
    assert (tmp_path / JOURNAL).exists()
    assert signed.panes.keys() == {estimate_key(pane) for pane in (*panes, *estimates)}
    assert signed.files.keys() == {f"rejected/{path.name}" for path in (tmp_path / "rejected").glob("*.avro")}


def read_all(out: Path, kind: Panes[Any], path: Path | None = None) -> list[Any]:
    catalog = Catalog.read(out, (kind,), refuse)
    return list(catalog.panes(kind, [entry for entry in catalog.entries(kind) if path in (None, entry.file)]))
