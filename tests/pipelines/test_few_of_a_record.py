"""A record of which some or all variables have too few reports: no empty estimate, and every reader says why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests import build
from tests.build import START
from tests.pipelines.command import Run
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.collector.sealing import WindowSum, flags_of, p_values_of, seal
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.flags import Flag
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

SPEC = """
collection: c
version: 1
domain: {record: {app: {size: 3}, hours: {number: {low: 0, high: 8}}}}
mechanism: {name: sample-one, epsilon: 1.0, of: {app: {name: rr}, hours: {name: duchi}}}
window: {size: 1h}
limits: {min_reports: 50}
"""


@pytest.fixture
def results(uldp: Run, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The results of reports about the app, and about the hours."""
    (tmp_path / "spec.yaml").write_text(SPEC)
    spec, rng = CollectionSpec.load(tmp_path / "spec.yaml"), np.random.default_rng(1)
    symbols = np.repeat([0, 9], request.param)
    payloads = build_protocol(spec).mechanism.perturb(symbols, rng)
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([Message(Report("c", 1, rng.bytes(16), START, int(each)).encode(), START) for each in payloads])
    stream.close()
    command = "backfill", "--spec", tmp_path / "spec.yaml", "--from", tmp_path / "stream", "--to", tmp_path / "out"
    assert uldp(*command)[0] == 0
    return tmp_path / "out"


@pytest.mark.parametrize("results", [(49, 49)], indirect=True)
def test_a_window_without_a_table_is_listed_with_its_reason(results: Path, uldp: Run, tmp_path: Path) -> None:
    assert not (results / "estimates").exists()
    code, text, _ = uldp("show", results)
    assert code == 0
    assert "no estimate is published" in text
    assert "n 98" in text
    assert "flags: few_reports" in text
    assert uldp("report", results, "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Windows without an estimate" in page
    assert '<span class="flags">few_reports</span>' in page


@pytest.mark.parametrize("results", [(50, 49)], indirect=True)
def test_a_window_without_one_of_its_tables_says_so(results: Path, uldp: Run) -> None:
    code, text, _ = uldp("show", results)
    assert code == 0
    assert "flags: few_of_variable" in text
    assert "hours" not in text


@pytest.mark.parametrize(
    ("app", "hours", "raised"),
    [
        (50, 50, []),
        (50, 49, [Flag.FEW_OF_VARIABLE]),
        (50, 0, []),
        (49, 49, [Flag.FEW_REPORTS]),
        (49, 0, [Flag.FEW_REPORTS]),
    ],
)
def test_flags_and_estimates_agree(app: int, hours: int, raised: list[Flag], tmp_path: Path) -> None:
    (tmp_path / "specs/c-v1").mkdir(parents=True)
    (tmp_path / "specs/c-v1/spec.yaml").write_text(SPEC)
    of = serve(ResultsFolder(tmp_path).specs.values())["c", 1]
    payloads = of.mechanism.perturb(np.repeat([0, 9], [app, hours]), np.random.default_rng(2))
    n = app + hours
    total = WindowSum.of(build.part(of.mechanism.statistic(payloads), Accounting(n, n)), 0)
    (p_values,) = p_values_of(of.protocol.decoder, [total])
    assert [flag for flag in flags_of(of, total, p_values) if flag is not Flag.IMPROBABLE_STRATA] == raised
    sealed = seal(of, total, 0, 3_600_000, Pane(PaneKind.ON_TIME, 0), p_values)
    tables = [table.n for estimate in estimates_of(of, sealed) for table in estimate.tables]
    assert tables == [each for each in (app, hours) if each >= 50]
    # Whoever merges windows makes a statistic without flags.
    assert all(estimate.tables for estimate in estimates_of(of, replace(sealed, flags=())))
