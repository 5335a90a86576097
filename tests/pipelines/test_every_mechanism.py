"""Numbers, hashes, strings and records from devices to the page, by the same commands as every other collection."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests import build
from tests.build import START
from tests.pipelines.command import Run as Command
from tests.pipelines.command import run as run_command
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.estimate import Estimate
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Table, TableName
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

#: Standard errors between an estimate and the truth. Under a normal law, one of the 166 entries below is farther off by
#: chance with a probability of at most 166 * 5.8e-7 = 1e-4; the simulation has a fixed seed.
Z = 5

USERS, BINS = 5_000, 24
HOURS: dict[str, Any] = {"number": {"low": 0, "high": 24}}
#: The middle of each bin and its share. Rounded to the grid, users in the middle of a bin are like users all over it.
MIDDLES = np.arange(BINS) + 0.5
SHARES: Floats = MIDDLES * (24 - MIDDLES) / (MIDDLES * (24 - MIDDLES)).sum()

NUMBERS = "value,weight\n" + "".join(f"{m},{share}\n" for m, share in zip(MIDDLES, SHARES, strict=True))
PLACES = "value,tag,weight\n" + "".join(f"{place},,{20 - place}\n" for place in range(20))
TEXTS = 'value,weight\nweather,4\n"a,b",3\n日本,2\nno candidate,1\n'
RECORDS = "app,app.tag,hours,weight\nmaps,,2,4\nmail,,11,2\nmail,home,23,1\nclinic,,5,2\nclinic,home,8,1\n"
RECORD: dict[str, Any] = {
    "record": {
        "app": {
            "labels": ["maps", "mail", "clinic"],
            "sensitive": ["clinic"],
            "tags": [{"name": "home", "background": "home.csv", "zones": "zones.csv", "zone_epsilon": 0.8}],
        },
        "hours": HOURS,
    }
}

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "duchi": ({"domain": HOURS, "mechanism": {"name": "duchi", "epsilon": 1.0}}, NUMBERS),
    "block": (
        {
            "domain": HOURS,
            "mechanism": {"name": "block", "epsilon": 1.0, "bins": BINS},
            "estimator": ["empirical", "ems"],
        },
        NUMBERS,
    ),
    "olh": (
        {"domain": {"size": 20}, "mechanism": {"name": "olh", "epsilon": 1.0}, "estimator": ["empirical", "norm-sub"]},
        PLACES,
    ),
    "strings": (
        {
            "domain": {"strings": {"longest": 16}},
            "mechanism": {"name": "bloom", "epsilon": 3.0, "bits": 32, "cohorts": 16},
            "candidates_file": "candidates.csv",
        },
        TEXTS,
    ),
    "record": (
        {
            "domain": RECORD,
            "mechanism": {
                "name": "sample-one",
                "epsilon": 1.0,
                "of": {"app": {"name": "urr", "share": 0.7}, "hours": {"name": "duchi", "share": 0.3}},
            },
        },
        RECORDS,
    ),
}


@dataclass(frozen=True)
class Run:
    """A collection, its simulated stream, and the results of both kinds of job."""

    spec: CollectionSpec
    truth: Truth
    stream: Path
    backfilled: Path
    streamed: Path

    @property
    def estimates(self) -> list[Estimate]:
        return newest(ResultsFolder(self.backfilled).estimates())


def write_spec(folder: Path, keys: dict[str, Any], name: str = "spec.yaml") -> Path:
    (folder / "home.csv").write_text("mail,1\nclinic,1\n", encoding="utf-8")
    (folder / "zones.csv").write_text("mail,letters\nclinic,doctors\n", encoding="utf-8")
    (folder / "candidates.csv").write_text('value\nweather\n"a,b"\n日本\nnobody\n\u202e\n', encoding="utf-8")
    path = folder / name
    path.write_text(
        yaml.safe_dump(build.MINIMAL | {"collection": "all", "limits": {"min_reports": 1}} | keys), encoding="utf-8"
    )
    return path


def messages(folder: Path) -> Iterator[Message]:
    return (message for file in message_files(folder) for message in read_messages(file))


@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in CASES])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp(request.param)
    keys, rows = CASES[request.param]
    file, truth = write_spec(folder, keys), folder / "truth.csv"
    truth.write_text(rows, encoding="utf-8")
    faults = ["--duplicates", "0.03", "--late", "0.02", "--malformed", "0.03"]
    options = ["--users", str(USERS), "--duration", "2h", "--seed", "7", *faults]
    run_command("simulate", file, "--truth", truth, *options, "--to", folder / "sent")
    stream = LocalStream.create(folder / "stream", simulated_clock=True)
    sent = list(messages(folder / "sent"))
    for part in np.array_split(np.arange(len(sent)), 10):  # a stream of few segments is followed in little time
        stream.append([sent[index] for index in part])
    stream.close()
    for job, to in (("backfill", "backfilled"), ("stream", "streamed")):
        run_command(job, "--spec", file, "--from", stream.path, "--to", folder / to)
    spec = CollectionSpec.load(file)
    return Run(spec, Truth.load(truth, spec), stream.path, folder / "backfilled", folder / "streamed")


def cells_by_window(panes: Sequence[Statistic]) -> dict[int, list[int]]:
    return {pane.window_start: pane.cells.tolist() for pane in panes}


@pytest.mark.slow
def test_a_stream_counts_what_a_backfill_of_all_but_the_late_reports_counts(run: Run, tmp_path: Path) -> None:
    late = Counter(message.data for message in messages(run.streamed / "late"))
    assert late.total() > 0
    on_time = []
    for message in messages(run.stream):
        late[message.data] -= 1
        on_time += [message] * (late[message.data] < 0)
    stream = LocalStream.create(tmp_path / "on-time", simulated_clock=True)
    stream.append(on_time)
    stream.close()
    jobs.backfill([run.spec], stream.path, tmp_path / "out", jobs.pipeline_options([]))
    streamed, backfilled = (
        newest(ResultsFolder(run.streamed).statistics()),
        newest(ResultsFolder(tmp_path / "out").statistics()),
    )
    assert len(streamed) == 2
    assert cells_by_window(streamed) == cells_by_window(backfilled)
    for pane, other in zip(streamed, backfilled, strict=True):
        late_here = pane.accounting.late
        assert pane.accounting == replace(
            other.accounting, received=other.accounting.received + late_here, late=late_here
        )


@pytest.mark.parametrize("job", ["backfilled", "streamed"])
def test_the_law_closes(run: Run, job: str) -> None:
    out: Path = getattr(run, job)
    panes = newest(ResultsFolder(out).statistics())
    total = sum((pane.accounting for pane in panes), Accounting())
    assert min(total.counted, total.duplicate, total.rejected) > 0
    assert (total.late > 0) == (job == "streamed")
    assert total.received == total.counted + total.duplicate + total.late + total.rejected
    # Some rejected reports are of no window: nobody can read them, or they name another time or version.
    rejected = sum(record.reports for record in ResultsFolder(out).rejected())
    assert sum(1 for _ in messages(run.stream)) - total.received == rejected - total.rejected > 0
    assert all(not pane.flags for pane in panes)


def true_values(table: Table, truth: Truth) -> Floats:
    """The values of a table, computed from the truth alone."""
    attribute = "".join(table.of)
    match table.name:
        case TableName.MEAN:
            return np.array([truth.mean(attribute)])
        case TableName.QUANTILE:
            levels = [float(key) for key in table.keys or ()]
            return np.asarray(np.interp(levels, [0, *np.cumsum(SHARES)], np.arange(BINS + 1)), dtype=np.float64)
        case TableName.HIDDEN:
            bots: Floats = truth.intermediate(attribute)[truth.variables[attribute].size :]
            return bots
        case TableName.VISIBLE | TableName.BAND:
            values, bots = np.split(truth.intermediate(attribute), [truth.variables[attribute].size])
            return np.asarray(values + (bots.sum() if table.name is TableName.BAND else 0), dtype=np.float64)
        case TableName.ZONE:
            return np.array([0.1, 0.1, 0.0])  # of ten, one hides mail and one hides clinic, and nobody hides maps
        case TableName.UNEXPLAINED:
            return np.array([0.1])
        case TableName.SHARE if truth.variables[attribute].kind.ordered:
            return SHARES
    return truth.distribution(attribute)


def test_estimates_are_near_the_truth(run: Run) -> None:
    assert {estimate.estimator for estimate in run.estimates} == set(run.spec.estimators)
    for estimate in run.estimates:
        for table in estimate.tables:
            if table.name is TableName.FOUND:
                # So the three that devices hold, and none of the others.
                assert table.values.tolist() == [1, 1, 1, 0, 0]
            elif table.name not in {TableName.BOUND, TableName.P_VALUE}:
                truth = true_values(table, run.truth)
                assert table.values.shape == truth.shape
                assert (np.abs(table.values - truth) <= Z * table.stderr).all(), (estimate.estimator, table.name)


def test_show_as_json_has_the_tables_and_the_cells(run: Run, uldp: Command) -> None:
    _, shown, _ = uldp("show", run.backfilled, "--json")
    lines = [json.loads(line) for line in shown.splitlines()]
    cells = cells_by_window(newest(ResultsFolder(run.backfilled).statistics()))
    assert len(lines) == 2 * len(run.spec.estimators)
    for line, estimate in zip(lines, run.estimates, strict=True):
        assert line["device_digest"] == run.spec.device_digest
        assert line["counts"] == cells[estimate.window_start]
        assert [(table["name"], table["of"], table["n"], table["values"]) for table in line["tables"]] == [
            (table.name, list(table.of), table.n, table.values.tolist()) for table in estimate.tables
        ]


def test_a_window_whose_devices_all_choose_one_attribute_is_flagged(tmp_path: Path) -> None:
    file = write_spec(tmp_path, CASES["record"][0])
    spec, rng = CollectionSpec.load(file), np.random.default_rng(3)
    # The apps; a share of .7 gives 400 of 400 by 1e-62.
    payloads = build_protocol(spec).mechanism.perturb(np.arange(400) % 3, rng)
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([Message(Report(*spec.key, rng.bytes(16), START, int(each)).encode(), START) for each in payloads])
    stream.close()
    run_command("backfill", "--spec", file, "--from", stream.path, "--to", tmp_path / "out")
    (pane,) = ResultsFolder(tmp_path / "out").statistics()
    assert pane.flags == (Flag.IMPROBABLE_STRATA,)
    (estimate,) = ResultsFolder(tmp_path / "out").estimates()
    assert {table.of for table in estimate.tables} == {("app",)}
