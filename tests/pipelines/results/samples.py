"""A window's counts and its estimate, and results of several hours in files, for the tests of readers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import yaml

from tests import build
from tests.build import HOUR, START
from tests.pane_files import estimate_file, statistic_file
from tests.pane_files import save as save_file
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.results.files import Damaged, refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import Schema
from uldp.schemas.pane import Accounting, Pane, PaneKind, Sender, Signals, Superseded
from uldp.schemas.rejected import Rejected
from uldp.schemas.shuffled import Shuffled
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.statistic import Statistic

SPEC = """
collection: c
version: 1
domain: {labels: [red, green, blue]}
sensitive: [red]
mechanism: {name: urr, epsilon: 1.5}
tags: [{name: home}]
window: {size: 1h}
"""

DIGEST = CollectionSpec.parse(yaml.safe_load(SPEC)).device_digest
COUNTS = build.pane(
    [30, 40, 10, 20],
    device_digest=DIGEST,
    revision=2,
    accounting=Accounting(107, 100, 4, 2, 1),
    flags=("improbable_counts",),
    supersedes=Superseded(1, 90),
    signals=Signals((0, 3), (60, 30, 0, 7), 2, Sender("00000000000000ff", 50)),
)
ESTIMATE = build.estimate(
    COUNTS,
    [0.25, 0.7512, -0.0012],
    [0.031, 0.0214, 0.01],
    mechanism="urr",
    epsilon=1.5,
    shuffle=(Shuffled(reports=60, epsilon=0.25, delta=1e-6),),
    estimator="empirical",
    tags={"home": (0.05, 0.024)},
)
REJECTED = Rejected("decode", "not_avro", "starts with 00", (b"\x00",), {"k": "v"}, (START,), "s:1", 1, "0.1.0")

SPECS = {("c", 1): build.spec(domain={"size": 3}, limits={"max_rejected_ratio": 0.1, "when_exceeded": "stop"})}


def folder_of(
    out: Path, damaged: Damaged = refuse, *, specs: Mapping[CollectionKey, CollectionSpec] = SPECS
) -> ResultsFolder:
    """A results directory, which keeps these specs."""
    keep_specs(str(out), list(specs.values()))
    return ResultsFolder(out, damaged)


def write(path: Path, schema: Schema, *values: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, schema, values)
    return path


def write_estimate(out: Path, estimate: Estimate = ESTIMATE) -> Path:
    return save_file(out, estimate_file(estimate))


def fired(
    received: int, revision: int, *, estimator: str = "mle", version: int = 1, start: int = START, kind: str = "early"
) -> Estimate:
    return replace(
        ESTIMATE,
        version=version,
        window_start=start,
        pane=Pane(PaneKind(kind), revision),
        accounting=Accounting(received, received),
        estimator=estimator,
    )


def at(hour: int, estimator: str = "mle", revision: int = 2) -> Estimate:
    """An estimate of an hour of the day."""
    start = START + hour * HOUR
    pane = Pane(PaneKind.ON_TIME, revision)
    return replace(ESTIMATE, window_start=start, window_end=start + HOUR, pane=pane, estimator=estimator)


def statistic_of(estimate: Estimate) -> Statistic:
    """The statistic of an estimate's pane, with the cells of ``COUNTS``."""
    return Statistic(**estimate.header(), cells=COUNTS.cells)


def save(out: Path, *estimates: Estimate) -> None:
    for estimate in estimates:
        save_file(out, estimate_file(estimate))
        save_file(out, statistic_file(statistic_of(estimate)))


def hours(estimates: list[Estimate]) -> list[int]:
    return [(estimate.window_start - START) // HOUR for estimate in estimates]
