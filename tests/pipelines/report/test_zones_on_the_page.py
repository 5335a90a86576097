"""The page says what reports tell of values behind tags with zones."""

from pathlib import Path
from typing import Any

import pytest

from tests import build
from uldp.pipelines.report.guarantee import guarantee
from uldp.schemas.specs.collection import CollectionSpec


@pytest.mark.parametrize(
    ("zones", "said"),
    [
        ({}, None),
        (
            {"zones": "zones.csv", "zone_epsilon": 1.0},
            "Between two values behind one tag, it is at most 2.72 for home.",
        ),
        (
            {"zones": "zones.csv"},
            "A report may name the zone of a value behind home: between zones, it is up to exp(ε).",
        ),
    ],
    ids=["plain", "nested", "zones"],
)
def test_the_guarantee_says_what_a_report_tells_of_the_zone(
    zones: dict[str, Any], said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "zones.csv").write_text("0,a\n1,b\n", encoding="utf-8")
    keys = build.MINIMAL | {"sensitive": [0], "tags": [{"name": "home"} | zones]}
    sentence = guarantee(CollectionSpec.parse(keys, base=tmp_path))
    assert "exp(ε) = 2.72 times as likely" in sentence
    assert ("behind home" in sentence or "behind one tag" in sentence) == (said is not None)
    assert (said or "reveals it, and with it that the user does not hide this value.") in sentence
