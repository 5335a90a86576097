"""Tables of tags with zones: what they say of zones, tags and values, and how far they may be off."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table, TableName

#: Of 30 values, 0 to 2 are in X_S, and users hide 10 to 29 behind one of two tags.
SIZE, HIDDEN, N = 30, 0.2, 40_000
PLACES = np.where(np.arange(SIZE) < 10, 0.0, np.arange(SIZE) + 1.0)
PLACES /= PLACES.sum()
VISIBLE = np.full(SIZE, 1 / SIZE)
ZONES = {"home": "".join(f"{value},z{value // 5}\n" for value in range(10, 30)), "work": "0,a\n1,a\n20,b\n21,c\n"}
KINDS: dict[str, tuple[float | None, float | None]] = {"zones": (None, None), "nested": (1.0, 1.0), "both": (None, 1.0)}


def protocol(folder: Path, kind: str, mechanism: str = "urr", **keys: Any) -> LdpProtocol:
    """The protocol of tags home and work with zones; the background is uniform, and so wrong."""
    background = "".join(f"{value},8\n" for value in range(10, 30))
    (folder / "background.csv").write_text(background, encoding="utf-8")
    tags = []
    for name, budget in zip(ZONES, KINDS[kind], strict=True):
        (folder / f"{name}.csv").write_text(ZONES[name], encoding="utf-8")
        tags.append({"name": name, "background": "background.csv", "zones": f"{name}.csv", "zone_epsilon": budget})
    spec = {"domain": {"size": SIZE}, "sensitive": [0, 1, 2], "mechanism": {"name": mechanism, "epsilon": 3.0}}
    return build_protocol(CollectionSpec.parse(build.MINIMAL | spec | {"tags": tags} | keys, base=folder))


def hold(n: int, seed: int) -> Held:
    """What n users hold: a fifth each hide a value behind home and work, and the rest show one."""
    rng = default_rng(seed)
    tags = rng.choice([-1, 0, 1], n, p=[1 - 2 * HIDDEN, HIDDEN, HIDDEN])
    return Held(np.where(tags < 0, rng.choice(SIZE, n), rng.choice(SIZE, n, p=PLACES)), tags)


def cells(of: LdpProtocol, n: int = N, seed: int = 1) -> Counts:
    rng = default_rng(seed + 1000)
    return of.mechanism.statistic(of.perturb([hold(n, seed)], rng))


def tables(of: LdpProtocol, counts: Counts, n: int = N) -> dict[TableName, Table]:
    return {table.name: table for table in of.decoder.tables(counts, n, "mle")}


def true_zones() -> Floats:
    """The share of users in each zone of home and work, in the order of the files."""
    home = [PLACES[first : first + 5].sum() for first in range(10, 30, 5)] + [PLACES[:10].sum()]
    work = [PLACES[:2].sum(), PLACES[20], PLACES[21], PLACES[2:20].sum() + PLACES[22:].sum()]
    return HIDDEN * np.array(home + work)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_says_where_users_behind_a_tag_are(kind: str, tmp_path: Path) -> None:
    of = protocol(tmp_path, kind)
    found = tables(of, cells(of))
    assert found[TableName.HIDDEN].keys == ("home", "work")
    assert found[TableName.ZONE].keys == tuple(f"home/{zone}" for zone in ("z2", "z3", "z4", "z5", "rest")) + tuple(
        f"work/{zone}" for zone in ("a", "b", "c", "rest")
    )
    for name, truth in ((TableName.HIDDEN, np.full(2, HIDDEN)), (TableName.ZONE, true_zones())):
        assert (np.abs(found[name].values - truth) < 5 * found[name].stderr).all()
    # A report of urr supports one bot, so the users behind a tag are counted.
    assert (found[TableName.HIDDEN].basis, found[TableName.ZONE].basis) == (Basis.EXACT, Basis.SCORE)
    zones, hidden = found[TableName.ZONE].values, found[TableName.HIDDEN].values
    assert [zones[:5].sum(), zones[5:].sum()] == pytest.approx(hidden.tolist())
    assert found[TableName.SHARE].values.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_nearer_than_the_background_alone(kind: str, tmp_path: Path) -> None:
    truth = (1 - 2 * HIDDEN) * VISIBLE + 2 * HIDDEN * PLACES
    assumed = (1 - 2 * HIDDEN) * VISIBLE + 2 * HIDDEN * np.where(np.arange(SIZE) < 10, 0, 1 / 20)
    of = protocol(tmp_path, kind)
    off = np.abs(tables(of, cells(of, 1_000_000), 1_000_000)[TableName.SHARE].values - truth).sum()
    assert off < 0.7 * np.abs(assumed - truth).sum()


def test_what_zones_exclude_is_not_in_the_band(tmp_path: Path) -> None:
    # A value of X_S can be only behind zone rest of home and zone a of work; in plain PUM all hidden users may hold it.
    of = protocol(tmp_path, "zones")
    found = tables(of, cells(of))
    most = found[TableName.BAND].values - found[TableName.VISIBLE].values
    zones = found[TableName.ZONE].values
    assert most[0] == pytest.approx(zones[4] + zones[5])
    assert most[20] == pytest.approx(zones[2] + zones[6])
    # Zones b and c have one value, so no background of them can be wrong.
    assert found[TableName.BOUND].values[0] == pytest.approx(2 * (zones.sum() - zones[6] - zones[7]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_check_says_what_a_report_tells_of_the_zone(kind: str, tmp_path: Path) -> None:
    lines = [text for heading, text in protocol(tmp_path, kind).decoder.describe(N, "auto") if heading == "zones"]
    budgets = KINDS[kind]
    odds = ["20.1" if budget is None else "2.72" for budget in budgets]
    for line, times, budget in zip(lines, odds, budgets, strict=True):
        assert f"a report is up to {times} times as likely from one zone as from another" in line
        assert line.endswith("% of reports from behind it name the zone") == (budget is None)


def test_cells_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    decoder = protocol(tmp_path, "nested").decoder
    assert isinstance(decoder, ZonedDecoder)
    with pytest.raises(ValueError, match="the cells have shape"):
        decoder.check(np.zeros(3, dtype=np.int64), 0)
    with pytest.raises(ValueError, match="one report or more"):
        decoder.learned(np.zeros(3, dtype=np.int64), 0)
