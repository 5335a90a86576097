"""A connector that a package from outside of this tree brings: a backfill reads what it names."""

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.outside.conftest import Run
from uldp.transforms.io.local.stream import LocalStream

#: One worker installs the package, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("outside")]

SPEC = """
collection: c
version: 1
domain: {size: 5}
mechanism: {name: rr, epsilon: 1.0}
window: {size: 1h}
limits: {min_reports: 1}
"""


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows that a job published."""
    return [json.loads(path.read_bytes()) for path in folder.glob("*.json")]


def test_a_backfill_reads_its_messages(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SPEC, encoding="utf-8")
    sent = [build.message(build.report(number, number % 5, build.START), build.START) for number in range(2500)]
    lines = "".join(f"{each.publish_time} {each.data.hex()}\n" for each in sent)
    (tmp_path / "messages.txt").write_text(lines, encoding="ascii")
    to = ("--to", "out", "--estimates-to", "hexlines:published")
    uldp("backfill", "--spec", "c.yaml", "--from", "hexlines:messages.txt", *to)
    (estimate,) = map(json.loads, uldp("show", "--json", "out").splitlines())
    assert (estimate["n"], estimate["tables"][0]["values"]) == (2500, pytest.approx([0.2] * 5))
    published = sorted(rows(tmp_path / "published"), key=itemgetter("position"))
    assert [row["estimate"] for row in published] == estimate["tables"][0]["values"]


def test_a_stream_publishes_to_it(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SPEC, encoding="utf-8")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    stream.append([build.message(build.report(number, number % 5, build.START), build.START) for number in range(50)])
    stream.close()
    uldp("stream", "--spec", "c.yaml", "--from", "stream", "--to", "out", "--estimates-to", "hexlines:published")
    assert [row["n"] for row in rows(tmp_path / "published")] == [50] * 5
