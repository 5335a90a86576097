"""The sentences of the page about privacy; those about all reports of a user are in results/test_over_time.py."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests import build
from uldp.pipelines.report.guarantee import guarantee
from uldp.schemas.specs.collection import CollectionSpec

SOME = {"sensitive": [3]}


def tag(**zones: Any) -> dict[str, Any]:
    return {"sensitive": [0], "tags": [{"name": "home", **zones}], "mechanism": {"name": "urr", "epsilon": 1.0}}


def by(name: str, epsilon: float = 1.0, **more: Any) -> dict[str, Any]:
    return {"mechanism": {"name": name, "epsilon": epsilon, **more}}


@pytest.mark.parametrize(
    ("keys", "begins", "holds", "lacks"),
    [
        ({"mechanism": {"name": "identity"}}, "Nobody is protected: every report is the true value.", "", "ε"),
        *((by(name), "Whatever value a user holds", "(ε-LDP)", "tag") for name in ("rr", "oue", "urr", "urap")),
        *(
            (
                by(name) | SOME,
                "A user whose value is sensitive sends only protected reports",
                "(ULDP); a user at any other value may send a report that reveals it.",
                "ε-LDP",
            )
            for name in ("urr", "urap", "uoue")
        ),
        (
            by("rr", lasting_epsilon=3.0),
            "Whatever",
            "for two or more reports of one value together, the factor is 20.1. Values of one user add up.",
            "t·ε",
        ),
        (
            tag(),
            "A user whose value is sensitive, or is one that the device hides behind a tag and tells nobody about,",
            "reveals it, and with it that the user does not hide this value.",
            "behind one tag",
        ),
        (
            tag(zones="zones.csv", zone_epsilon=1.0),
            "A user whose",
            "Between two values behind one tag, it is at most 2.72 for home.",
            "behind home",
        ),
        (
            tag(zones="zones.csv"),
            "A user whose",
            "A report may name the zone of a value behind home: between zones, it is up to exp(ε).",
            "behind one tag",
        ),
        *(
            (by("rr", epsilon), "Whatever", f"at most exp(ε) = {factor} times as likely", "tag")
            for epsilon, factor in ((1, "2.72"), (math.log(625), "625"), (math.log(12_800), "12,800"), (20, "4.85e+08"))
        ),
    ],
)
def test_the_guarantee_of_a_report(keys: dict[str, Any], begins: str, holds: str, lacks: str, tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("0,a\n1,b\n", encoding="utf-8")
    sentence = guarantee(CollectionSpec.parse(build.MINIMAL | keys, base=tmp_path))
    assert sentence.startswith(begins)
    assert holds in sentence
    assert lacks not in sentence
