"""Rows of estimates as JSON: they are the rows of all other places, and messages are keyed by row."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests import build
from tests.build import START
from tests.pipelines.results.test_export import WITH_TAGS
from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import Accounting, Pane, PaneKind
from uldp.schemas.rows import STORED_COLUMNS, rows
from uldp.transforms.io.json_rows import keyed_rows

HOSTILE = "</script>'\"\\=1+1"
SPEC = build.spec(domain={"labels": ["red", HOSTILE, "blå"]})
SPECS = SharedSpecs([SPEC])


def bodies(one: Estimate) -> list[dict[str, Any]]:
    return [json.loads(body) for _, body in keyed_rows(SPECS, one)]


def keys(one: Estimate) -> list[bytes]:
    return [key for key, _ in keyed_rows(SPECS, one)]


def test_messages_are_the_rows() -> None:
    read = [
        row | {name: datetime.fromisoformat(row[name]) for name in ("window_start", "window_end")}
        for row in bodies(WITH_TAGS)
    ]
    assert read == list(rows(WITH_TAGS, SPEC))
    assert [list(row) for row in read] == [list(STORED_COLUMNS)] * 5


def test_times_are_in_utc() -> None:
    half = replace(WITH_TAGS, window_start=START + 500)
    assert {(row["window_start"], row["window_end"]) for row in bodies(half)} == {
        ("2026-01-01T09:00:00.500000Z", "2026-01-01T10:00:00Z")
    }


def test_a_key_names_a_row_in_all_panes() -> None:
    window = f"c/1/{WITH_TAGS.device_digest}/2026-01-01T09:00:00Z/2026-01-01T10:00:00Z/empirical"
    assert keys(WITH_TAGS) == [
        f"{window}/{row}".encode() for row in ("share/0", "share/1", "share/2", "hidden/0", "bound/0")
    ]
    later = replace(WITH_TAGS, pane=Pane(PaneKind.LATE, 9), accounting=Accounting(300, 300))
    assert keys(later) == keys(WITH_TAGS)
