"""A window's counts and its estimate, and results of several hours in files, for the tests of readers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from tests import build
from tests.build import HOUR, START
from uldp.schemas.framing import Schema, load_schema
from uldp.schemas.records import Accounting, Estimate, Pane, PaneKind, Rejected, Sender, Signals, Superseded, TagMass
from uldp.transforms.io.results import counts_file, estimate_file, write_file

SPEC = """
collection: c
version: 1
domain: {labels: [red, green, blue]}
sensitive: [red]
mechanism: {name: urr, epsilon: 1.5}
tags: [{name: home}]
window: {size: 1h}
"""

COUNTS = build.pane(
    [30, 40, 10, 20],
    revision=2,
    accounting=Accounting(107, 100, 4, 2, 1),
    flags=("improbable_counts",),
    supersedes=Superseded(1, 90, np.array([27, 36, 9, 18])),
    signals=Signals((0, 3), (60, 30, 0, 7), 2, Sender("00000000000000ff", 50)),
)
ESTIMATE = build.estimate(
    COUNTS,
    [0.25, 0.7512, -0.0012],
    [0.031, 0.0214, 0.01],
    mechanism="urr",
    epsilon=1.5,
    estimator="empirical",
    tags={"home": TagMass(0.05, 0.024)},
    bound=0.1,
)
REJECTED = Rejected("decode", "not_avro", "starts with 00", b"\x00", {"k": "v"}, START, "s:1", 1, "0.1.0")

SPECS = {("c", 1): build.spec(domain={"size": 3}, limits={"max_rejected_ratio": 0.1, "when_exceeded": "stop"})}


def write(path: Path, schema: Schema, *values: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, schema, values)
    return path


def write_estimate(out: Path, estimate: Estimate = ESTIMATE, name: str = "000002.empirical.avro") -> Path:
    path = out / "estimates" / "c-v1" / "20260101T090000Z--20260101T100000Z" / name
    return write(path, load_schema("estimate"), estimate.to_avro())


def fired(
    received: int, revision: int, *, estimator: str = "mle", version: int = 1, start: int = START, kind: str = "early"
) -> Estimate:
    counts = replace(
        COUNTS,
        version=version,
        window_start=start,
        pane=Pane(PaneKind(kind), revision),
        accounting=Accounting(received, received),
    )
    return replace(ESTIMATE, support=counts, estimator=estimator)


def at(hour: int, estimator: str = "mle", revision: int = 2) -> Estimate:
    """An estimate of an hour of the day."""
    start = START + hour * HOUR
    support = replace(COUNTS, window_start=start, window_end=start + HOUR, pane=Pane(PaneKind.ON_TIME, revision))
    return replace(ESTIMATE, support=support, estimator=estimator)


def save(out: Path, *estimates: Estimate) -> None:
    for estimate in estimates:
        for name, content in (estimate_file(estimate), counts_file(estimate.support)):
            write_file(str(out / name), content)


def hours(estimates: list[Estimate]) -> list[int]:
    return [(estimate.support.window_start - START) // HOUR for estimate in estimates]
