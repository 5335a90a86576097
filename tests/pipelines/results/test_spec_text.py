"""The lines of a spec that ``uldp check`` prints."""

from typing import Any

import pytest

from tests import build
from uldp.pipelines.results.text import spec_text

RECORD: dict[str, Any] = {
    "domain": {"record": {"place": {"size": 6, "columns": 3}, "app": {"labels": ["a", "b"]}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"place": {"name": "oue"}, "app": {"name": "rr"}}},
}
LASTING: dict[str, Any] = {"mechanism": {"name": "urr", "epsilon": 1.0, "lasting_epsilon": 3.0}}
STOPS: dict[str, Any] = {"max_rejected_ratio": 0.1, "when_exceeded": "stop", "max_duplicate_ratio": 0.05}


@pytest.mark.parametrize(
    ("keys", "heading", "line"),
    [
        ({"domain": {"size": 6}}, "grid", None),
        ({"domain": {"size": 6, "columns": 2}}, "grid", "3 rows of 2, row 0 at the bottom; for maps alone"),
        (RECORD, "grid", "place: 2 rows of 3, row 0 at the bottom; for maps alone"),
        ({}, "limits", "1 reports or more, clocks"),
        ({"limits": STOPS}, "limits", "1 reports or more, stop above 0.1 rejected, flag above 0.05 duplicate, clocks"),
        ({}, "memory", None),
        ({}, "mechanism", "urr, epsilon 1 nats a report, over"),
        (LASTING, "mechanism", "urr, epsilon 1 nats a report and 3 for two or more of one value, over 5 values"),
        (LASTING, "memory", ""),
        (
            {"budget": {"epsilon": 4, "every": "30d"}},
            "budget",
            "epsilon 4 every 30d for each user, over all collections, up to 52 in 365d; honest devices refuse more",
        ),
        ({"event_time": "exact"}, "windows", "1h, 0d for late ones, with exact event times"),
        ({"window": {"size": "1d"}}, "windows", "1d from 00:00 UTC, 0d for late ones"),
        ({"window": {"size": "14d", "period": "7d"}}, "windows", "14d every 7d from Thursday 00:00 UTC, "),
        ({"window": {"size": "36h"}}, "windows", "36h, "),
        ({"window": {"size": "7d", "offset": "95h"}}, "windows", "7d from Sunday 23:00 UTC, "),
        (
            {"window": {"size": "1d", "period": "6h", "offset": "30m"}},
            "windows",
            "1d every 6h from 30m after multiples of 6h, ",
        ),
    ],
)
def test_a_part_of_a_spec_has_a_line_or_none(keys: dict[str, Any], heading: str, line: str | None) -> None:
    found = [row for row in spec_text(build.spec(**keys), 1000).splitlines() if row.startswith(f"  {heading} ")]
    assert len(found) == (line is not None)
    assert all(row.split(maxsplit=1)[1].startswith(line or "") for row in found)
