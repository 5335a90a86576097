"""Versions of one collection side by side, from devices to the pooled estimate that the commands show."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from tests import build
from tests.build import MINUTE, START
from tests.pipelines.command import Run
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.cli import cli
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

SHARES = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
#: Of the users, one in five hides the value.
HIDDEN, USERS = 0.2, 1500
KEYS: dict[str, Any] = {"sensitive": [0], "tags": [{"name": "home"}], "limits": {"min_reports": 10}}
MECHANISMS: list[dict[str, Any]] = [
    {"mechanism": {"name": "urr", "epsilon": 1.0}},
    {"mechanism": {"name": "urap", "epsilon": 2.0}},
    {"mechanism": {"name": "urr", "epsilon": 3.0}, "sensitive": [1, 2]},
]


def sent(spec: CollectionSpec, rng: np.random.Generator) -> list[Message]:
    """The reports of USERS devices within two hours, published at their event time."""
    protocol = build_protocol(spec)
    hidden = np.where(rng.random(USERS) < HIDDEN, 0, -1)
    payloads = protocol.perturb([Held(rng.choice(5, USERS, p=SHARES), hidden)], rng)
    times = START + rng.integers(0, 120, USERS) * MINUTE
    sendable = (payload.tobytes() if payload.ndim else int(payload) for payload in payloads)
    return [
        Message(Report(*spec.key, rng.bytes(16), int(time), payload).encode(), int(time))
        for time, payload in zip(times, sendable, strict=True)
    ]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of three versions, with their specs beside it."""
    folder, rng, messages = tmp_path_factory.mktemp("versions"), np.random.default_rng(9), list[Message]()
    for number, keys in enumerate(MECHANISMS, 1):
        path = folder / f"v{number}.yaml"
        path.write_text(yaml.safe_dump(build.MINIMAL | KEYS | keys | {"version": number}), encoding="utf-8")
        messages += sent(CollectionSpec.load(path), rng)
    messages.sort(key=lambda message: message.publish_time)
    stream = LocalStream.create(folder / "stream", simulated_clock=True)
    for part in np.array_split(np.arange(len(messages)), 4):
        stream.append([messages[index] for index in part])
    stream.close()
    return stream.path


@pytest.fixture(scope="module")
def results(stream: Path) -> dict[str, Path]:
    """What ``backfill`` and ``stream`` wrote, by the command."""
    specs = [option for path in sorted(stream.parent.glob("*.yaml")) for option in ("--spec", str(path))]
    outs = {job: stream.parent / "results" / job for job in ("backfill", "stream")}
    for job, out in outs.items():
        cli.main([job, *specs, "--from", str(stream), "--to", str(out)], standalone_mode=False)
    return outs


def test_rows_have_the_pooled_estimates_too(uldp: Run, results: dict[str, Path], tmp_path: Path) -> None:
    out = results["backfill"]
    code, text, _ = uldp("export", out, "--to", tmp_path / "f.parquet", "--pooled")
    assert (code, text.endswith(" rows of 8 estimates\n")) == (0, True)
    rows = pq.read_table(tmp_path / "f.parquet").to_pylist()
    _, shown, _ = uldp("show", out, "--pooled", "--json")
    pooled = [json.loads(line) for line in shown.splitlines()][-2:]
    shares = [row for row in rows if row["estimator"] == "pooled" and row["quantity"] == "share"]
    assert [row["estimate"] for row in shares] == [share for line in pooled for share in line["distribution"]]
    assert all(row["unbiased"] is not None and row["visible_unbiased"] is not None for row in shares)


def test_versions_are_compared(uldp: Run, results: dict[str, Path]) -> None:
    """All devices hold the same, so nothing has changed, whatever their mechanism."""
    out = results["backfill"]
    code, text, _ = uldp("ask", out, "--every", "1d", "--compare", "v1", "2026-01-01@v3", "--json")
    answers = [json.loads(line) for line in text.splitlines()]
    assert code == 0
    assert [each["label"] for each in answers] == ["0", "1", "2", "3", "4", "home", None]
    assert min(each["p_adjusted"] for each in answers) > 0.001
    code, _, errors = uldp("ask", out, "--compare", "2026-01-01T09", "2026-01-01T10")
    assert code == 1
    assert "'2026-01-01T09' is of several versions; add @ and one of v1 of c, v2 of c, v3 of c" in errors


def test_a_question_is_put_to_all_versions_together(uldp: Run, results: dict[str, Path]) -> None:
    out = results["backfill"]
    _, shown, _ = uldp("show", out, "--pooled", "--json")
    of_hours = [line for line in map(json.loads, shown.splitlines()) if line["estimator"] == "pooled"]
    code, text, _ = uldp("ask", out, "--pooled", "--json")
    shares = [each for each in map(json.loads, text.splitlines()) if each["quantity"] == "share"]
    assert code == 0
    assert [each["estimate"] for each in shares] == [share for line in of_hours for share in line["distribution"]]
    assert {tuple(each["versions"]) for each in shares} == {(1, 2, 3)}
    code, text, _ = uldp("ask", out, "--pooled", "--every", "1d", "--sum", "0,1")
    assert code == 0
    assert text.startswith("c versions 1, 2 and 3  2026-01-01  (")
    assert f"n {3 * USERS:,} of 6 windows" in text
    assert "the users of versions 1, 2 and 3 are of one population" in text
    code, text, _ = uldp("ask", out, "--pooled", "--compare", "2026-01-01T09", "2026-01-01T10")
    assert (code, "since v1+v2+v3 2026-01-01T09:00:00Z" in text) == (0, True)
    code, _, errors = uldp("ask", out, "--pooled", "--compare", "v1", "2026-01-01T10")
    assert (code, "'v1' is of one version; leave out --pooled, or name a time" in errors) == (1, True)
    code, _, errors = uldp("ask", out, "--pooled", "--explain", "2026-01-01T09", "0")
    assert (code, "--pooled has an estimator of its own" in errors) == (2, True)


def test_stream_and_backfill_of_three_versions_show_one_pooled_estimate_a_window(
    uldp: Run, results: dict[str, Path], tmp_path: Path
) -> None:
    lines = []
    for folder in results.values():
        code, out, err = uldp("show", folder, "--pooled", "--json")
        assert (code, err) == (0, "")
        estimates = [json.loads(line) for line in out.splitlines()]
        assert [line["version"] for line in estimates[:-2]] == [1, 1, 2, 2, 3, 3]
        lines.append(estimates[-2:])
    backfilled, streamed = lines
    assert streamed == backfilled
    assert sum(line["n"] for line in backfilled) == 3 * USERS
    assert {(*line["versions"], *line["flags"]) for line in backfilled} == {(1, 2, 3)}
    for line in backfilled:
        (shares,) = (table for table in line["tables"] if table["name"] == "visible")
        low, high = np.array(shares["low"]), np.array(shares["high"])
        # Twice the 95 % intervals are some 4 standard errors.
        assert (np.abs((low + high) / 2 - (1 - HIDDEN) * SHARES) <= high - low).all()

    # Without the option, each version is shown alone.
    _, alone, _ = uldp("show", results["backfill"])
    _, beside, _ = uldp("show", results["backfill"], "--pooled")
    assert beside.startswith(alone)
    assert "c versions 1, 2 and 3  2026-01-01 09:00 to 10:00 UTC  pooled\n" in beside.removeprefix(alone)

    assert uldp("report", results["backfill"], "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    # In the table of the newest version, and as title.
    assert page.count("09:00 to 10:00 UTC, versions 1, 2 and 3") == 2
    assert page.index("versions 1, 2 and 3") > page.index('id="c-v3"')
