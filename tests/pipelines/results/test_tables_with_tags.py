"""Shares as lines of text, with their intervals, and with what may be hidden behind tags."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.pipelines.results.soundness import sound_estimate
from uldp.pipelines.results.tables import tables_text
from uldp.schemas.estimate import Estimate
from uldp.schemas.table import Basis, Table

SPEC = build.spec(domain={"labels": ["red", "green", "blue"]})
ESTIMATE = build.estimate(build.pane([100]), [1.0], [0.0])


def table(name: str, values: list[float], low: list[float], high: list[float], **fields: Any) -> Table:
    ends = {"low": np.array(low), "high": np.array(high), "basis": Basis.EXACT}
    return build.table(name, values, [0.01] * len(values), **(ends | fields))


SHARE = table("share", [0.25, 0.6, 0.15], [0.2, 0.5, 0.1], [0.3, 0.7, 0.2])
VISIBLE = table("visible", [0.0, 0.55, 0.1], [0.0, 0.4, 0.05], [0.04, 0.6, 0.15])
BAND = table("band", [0.4, 0.9, 0.5], [0.0, 0.4, 0.05], [0.176, 1.0, 0.6])
HIDDEN = table("hidden", [0.05, 0.35], [0.04, 0.3], [0.06, 0.4], keys=("home", "workplace"))


def lines(*tables: Table, top: int = 10) -> list[str]:
    estimate: Estimate = replace(ESTIMATE, tables=tables)
    return list(tables_text(estimate, SPEC, top=top))


def test_of_each_value_the_lines_say_what_is_visible_and_what_may_be_hidden() -> None:
    assert lines(SHARE, VISIBLE, BAND, HIDDEN, top=2) == [
        "  the 2 largest of 3 values, in % with 95 % intervals",
        "  (where background puts more than a tenth of a share, with the interval of any background)",
        "        green   60.0  50.0 to 70.0  55.0 visible, up to 100.0 if hidden",
        "          red   25.0   0.0 to 17.6   0.0 visible, 20.0 to 30.0 if the background holds",
        "  behind tags, in % with 95 % intervals",
        "         home    5.0   4.0 to  6.0",
        "    workplace   35.0  30.0 to 40.0",
    ]


def test_intervals_say_their_level_and_whether_they_hold_at_once() -> None:
    assert lines(replace(SHARE, level=0.9))[0] == "  the 3 largest of 3 values, in % with 90 % intervals"
    at_once = lines(replace(SHARE, simultaneous=True))[0]
    assert at_once == "  the 3 largest of 3 values, in % with 95 % intervals that hold at once"


def test_visible_shares_and_bands_have_no_lines_of_their_own() -> None:
    assert lines(VISIBLE, BAND) == []


@pytest.mark.parametrize("name", ["visible", "band"])
@pytest.mark.parametrize("shares", [(), (SHARE,), (replace(SHARE, of=("colour",)),)], ids=["none", "more", "others"])
def test_visible_shares_and_bands_without_shares_of_the_same_values_are_damage(
    name: str, shares: tuple[Table, ...]
) -> None:
    forged = replace(ESTIMATE, tables=(*shares, table(name, [0.5, 0.5], [0.0, 0.0], [1.0, 1.0])))
    with pytest.raises(ValueError, match="a table is about other values than the shares"):
        sound_estimate(forged.to_avro())
