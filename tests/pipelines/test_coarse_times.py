"""Devices that round event times by longer slices than the windows of a job: what a job says of them at its end."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from tests.pipelines.command import Run
from uldp.pipelines.caveats import coarse_times
from uldp.schemas.pane import Accounting, Pane, PaneHeader, PaneKind, Signals
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

SPEC = """
collection: c
version: 1
domain: {size: 5}
mechanism: {name: rr, epsilon: 1.0}
window: {size: 10m}
"""
TEN = {"size": "10m"}


def sent(slice_ms: int, reports: int, offline: float = 0.0) -> list[Message]:
    """Reports of four hours by devices that round down to their slice; some send a day later."""
    rng = np.random.default_rng(slice_ms + reports)
    times = np.sort(rng.integers(START, START + 4 * HOUR, reports)).tolist()
    late = (24 * HOUR * (rng.random(reports) < offline)).tolist()
    found = [
        build.message(build.report(number, number % 5, time - time % slice_ms), time + more)
        for number, (time, more) in enumerate(zip(times, late, strict=True))
    ]
    return sorted(found, key=lambda message: message.publish_time)


@pytest.mark.parametrize("command", ["backfill", "stream"])
@pytest.mark.parametrize(
    ("slice_ms", "offline", "says"),
    [(HOUR, 0.0, True), (10 * MINUTE, 0.9, False), (2 * MINUTE, 0.0, False)],
    ids=["hour", "offline", "finer"],
)
def test_a_job_warns_of_longer_slices_of_devices_and_of_no_others(
    command: str, slice_ms: int, offline: float, says: bool, uldp: Run, tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(SPEC)
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append(sent(slice_ms, 1200, offline))
    stream.close()
    options = ("--spec", tmp_path / "spec.yaml", "--from", tmp_path / "stream", "--to", tmp_path / "out")
    code, text, _ = uldp(command, *options)
    assert code == 0
    assert "1,200 received" in text
    assert ("devices may round event times" in text) == says
    assert ("begin 1h apart, or multiples of it, and 83% of" in text) == says


def pane(start: int, in_time: int, after: int, **accounting: int) -> PaneHeader:
    n = in_time + after
    of = Accounting(**({"received": n, "counted": n} | accounting))
    return PaneHeader(
        "c", 1, "", start, start + 10 * MINUTE, Pane(PaneKind.ON_TIME, 0), of, signals=Signals(past=(in_time, after))
    )


HOURLY = [pane(START + hour * HOUR, 60, 40) for hour in range(3)]


@pytest.mark.parametrize(
    ("panes", "keys", "warns"),
    [
        (HOURLY, {}, True),
        (HOURLY, {"window": {"size": "1h", "period": "10m"}}, False),
        (HOURLY, {"event_time": "exact"}, False),
        ([pane(START + hour * HOUR, 59, 40) for hour in range(3)], {}, False),
        ([*HOURLY, pane(START + 10 * MINUTE, 0, 1, counted=0, late=1)], {}, False),
        ([*HOURLY, pane(START + 10 * MINUTE, 0, 1, counted=0, rejected=1)], {}, True),
        ([pane(START + hour * HOUR, 0, 100, counted=0, late=100) for hour in range(3)], {}, True),
        ([pane(START + number * 10 * MINUTE, 60, 40) for number in range(3)], {}, False),
        ([pane(START, 300, 300)], {}, False),
    ],
)
def test_the_rule(panes: list[PaneHeader], keys: dict[str, Any], warns: bool) -> None:
    assert (coarse_times(build.spec(**{"window": TEN} | keys), panes) is not None) == warns


@pytest.mark.parametrize(("elsewhere", "after"), [(0.1, 1.0), (0.0, 0.25)])
def test_chance_alone_never_warns(elsewhere: float, after: float) -> None:
    """A tenth of reports of the next slice, or a quarter that come late, in two thousand fleets of 300 reports."""
    rng, spec = np.random.default_rng(4), build.spec(window=TEN)
    for _ in range(2000):
        counts = rng.multinomial(300, [(1 - elsewhere) / 2, (1 - elsewhere) / 2, elsewhere])
        late = rng.binomial(counts, after)
        starts = (START, START + HOUR, START + 10 * MINUTE)
        panes = [
            pane(start, int(n - past), int(past)) for start, n, past in zip(starts, counts, late, strict=True) if n
        ]
        assert coarse_times(spec, panes) is None
