"""The page of a collection with tags: what was measured, what is assumed, what may be hidden; intervals at once."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.pipelines.report.test_page import Fired, page, pum_spec, save
from uldp.mechanisms.catalog import build_protocol
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table, TableName

SPEC = CollectionSpec.parse(pum_spec())
#: One user in ten hides the first value; all others hold the others.
HIDDEN = np.eye(30)[0] * 0.1
VISIBLE = np.append(0, np.full(29, 0.9 / 29))
TRUTH = {("pum", 1): KnownShares(VISIBLE + HIDDEN, VISIBLE)}
N = 20_000


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def fired(spec: CollectionSpec = SPEC) -> Fired:
    """The estimate that a job makes of simulated devices."""
    protocol = build_protocol(spec)
    rng = np.random.default_rng(3)
    symbols = rng.choice(32, N, p=np.concatenate([VISIBLE, [0.1, 0.0]]))
    cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
    statistic = build.pane(cells, key=("pum", 1), device_digest=spec.device_digest, accounting=Accounting(N, N))
    tables = protocol.decoder.tables(cells, N, "mle")
    return Fired(statistic, build.estimate(statistic, [], [], tables=tables, mechanism="urr"))


def figures(text: str) -> list[float]:
    return [float(figure) for figure in re.findall(r"−?\d+\.\d+", text.replace("−", "-"))]


def table(shown: Fired, name: TableName) -> Table:
    found = shown.estimate.table(name)
    assert found is not None
    return found


def largest_row(shown: Fired) -> str:
    """The figures of the largest value: its share with both ends, what is visible, and the most that may hold it."""
    share, visible, band = (table(shown, name) for name in (TableName.SHARE, TableName.VISIBLE, TableName.BAND))
    columns = (share.values, share.low, share.high, visible.values, band.high)
    largest = int(np.argmax(share.values))
    return "{} {} to {} {} {}".format(*(f"{100 * each[largest]:.2f}" for each in columns if each is not None))


def test_each_value_has_what_is_visible_and_how_many_may_hold_it(out: Path) -> None:
    save(out, pum_spec(), fired())
    words = page(out).words
    assert "Value Estimate 95 % interval Visible Up to" in words
    assert largest_row(fired()) in words


def test_where_background_puts_most_of_a_share_its_interval_is_the_band(out: Path) -> None:
    shown = fired()
    changed = {
        TableName.SHARE: lambda table: replace(table, basis=Basis.NORMAL),
        TableName.VISIBLE: lambda table: replace(table, values=0 * table.values),
    }
    tables = [changed.get(table.name, lambda same: same)(table) for table in shown.estimate.tables]
    save(out, pum_spec(), shown._replace(estimate=replace(shown.estimate, tables=tuple(tables))))
    words = page(out).words
    share, band = table(shown, TableName.SHARE), table(shown, TableName.BAND)
    assert band.low is not None
    assert band.high is not None
    i = int(np.argmax(share.values))
    figures = (100 * each[i] for each in (share.values, band.low, band.high, band.high))
    assert "{:.2f} {:.2f} to {:.2f} 0.00 {:.2f}".format(*figures) in words
    assert "Where background knowledge puts more than a tenth of an estimate" in words


def rectangles(html: Any) -> list[tuple[str, float, float]]:
    """Of each bar: its class, and where it begins and ends."""
    bars = [attributes for tag, attributes in html.tags if tag == "rect"]
    return [(bar["class"], float(bar["x"]), float(bar["x"]) + float(bar["width"])) for bar in bars]


def test_the_assumed_part_is_hatched_behind_the_measured_one(out: Path) -> None:
    save(out, pum_spec(), fired())
    bars = rectangles(page(out))
    assert [name for name, _, _ in bars] == ["fill", "assumed"] * 20  # tags without background share among all values
    for (_, _, measured), (_, begins, ends) in zip(bars[::2], bars[1::2], strict=True):
        assert begins == pytest.approx(measured, abs=0.01)
        assert ends > begins


def test_coverage_is_said_of_each_kind_of_interval(out: Path) -> None:
    save(out, pum_spec(), fired())
    words = page(out, truth=TRUTH).words
    assert "Intervals of all values of those that users hold of those that users hide visible share" in words
    _, _, rows = words.partition("of those that users hide visible share")
    found = figures(rows)[:9]
    assert found[8] == 100  # the band of the only hidden value
    assert min(found[:2]) > 85
    assert "of the 95 % intervals cover the truth" not in words


def test_intervals_at_once_are_those_of_a_spec_that_asks_for_them(out: Path) -> None:
    save(out, pum_spec(), fired())
    each, at_once = page(out).words, page(out, simultaneous=True).words
    assert "in % of users, with 95 % intervals." in each
    assert "in % of users, with 95 % intervals that hold at once." in at_once
    assert largest_row(fired(SPEC.with_intervals("simultaneous"))) in at_once
    assert largest_row(fired(SPEC.with_intervals("simultaneous"))) not in each


def test_intervals_at_once_need_the_counts(out: Path) -> None:
    save(out, pum_spec(), fired())
    for path in (out / "counts").rglob("*.avro"):
        path.unlink()
    with pytest.raises(
        RequestError, match="the counts are missing, from which intervals that hold at once follow; copy"
    ):
        page(out, simultaneous=True)


def test_an_estimate_of_before_is_still_shown(out: Path) -> None:
    """Jobs of before wrote neither visible shares nor bands, and no intervals of tags."""
    new = fired()
    old = [table for table in new.estimate.tables if table.name not in (TableName.VISIBLE, TableName.BAND)]
    save(out, pum_spec(), new._replace(estimate=replace(new.estimate, tables=tuple(old))))
    html = page(out, truth=TRUTH)
    assert {name for name, _, _ in rectangles(html)} == {"fill"}
    assert "Intervals of all values of those that users hold share" in html.words
