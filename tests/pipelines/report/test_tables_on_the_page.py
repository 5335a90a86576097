"""The page with tables without intervals, of records, and of other quantities than shares."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.pipelines.report.test_page import TRUTH, Fired, page, pum_fired, pum_spec, rr_fired, rr_spec, save
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def with_tables(fired: Fired, *tables: Table) -> Fired:
    return fired._replace(estimate=replace(fired.estimate, tables=tables))


def without_intervals(fired: Fired) -> Fired:
    return with_tables(fired, *(replace(each, low=None, high=None, basis=Basis.NONE) for each in fired.estimate.tables))


@pytest.mark.parametrize("known", [False, True])
def test_a_table_may_have_no_intervals(out: Path, known: bool) -> None:
    save(out, rr_spec(), without_intervals(rr_fired(rr_spec())))
    html = page(out, truth={("plain", 1): KnownShares(TRUTH)} if known else None)
    assert "largest of 30 values, in % of users, without intervals" in html.words
    assert "with 95 % intervals" not in html.words
    assert ("distance to the truth" in html.words) == known
    assert "intervals cover the truth" not in html.words
    assert html.count("svg") == 20
    assert html.count("img") == 0


def test_shares_of_0_without_intervals_have_a_scale(out: Path) -> None:
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *build.tables([0.0] * 30, [0.0] * 30)))
    assert page(out).count("article") == 1


def test_intervals_are_those_of_the_table(out: Path) -> None:
    ends: dict[str, Any] = {
        "low": build.floats(*[0.125] * 30),
        "high": build.floats(*[0.875] * 30),
        "basis": Basis.EXACT,
    }
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *build.tables([0.5] * 30, [0.1] * 30, **ends)))
    assert "12 to 88" in page(out).words


def test_zones_are_shares_and_the_largest_are_shown(out: Path) -> None:
    names = tuple(f"home/{i}" for i in range(30))
    ends: dict[str, Any] = {
        "low": build.floats(*[0.0] * 30),
        "high": build.floats(*[0.125] * 30),
        "basis": Basis.NORMAL,
    }
    zones = build.table("zone", np.linspace(0.001, 0.03, 30), [0.01] * 30, keys=names, **ends)
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *build.tables([1 / 30] * 30, [0.01] * 30), zones))
    words = page(out).words
    assert "The largest 20 of 30 entries. home/29 3.0 ± 1.0 %, 95 % interval 0.0 to 12.5 %" in words
    assert "home/9 " not in words


def test_each_attribute_of_a_record_has_shares_and_tags_of_its_own(out: Path) -> None:
    apps = build.tables([0.2, 0.8], [0.01] * 2, {"home": (0.0712, 0.0123)}, of=("app",))
    days = build.tables([0.25] * 4, [0.01] * 4, of=("<b>day",))
    save(out, pum_spec(), with_tables(pum_fired(), *apps, *days))
    html = page(out, truth={("pum", 1): KnownShares(TRUTH)})
    assert "Shares of app 100 reports" in html.words
    assert "Shares of <b>day 100 reports" in html.words
    assert "All 2 values, in % of users, without intervals" in html.words
    assert "All 4 values" in html.words
    assert "home 7.12 1.23" in html.words
    assert html.count("b") == 0


def test_other_tables_are_plain(out: Path) -> None:
    ends: dict[str, Any] = {"low": build.floats(6.9), "high": build.floats(7.6), "basis": Basis.NORMAL}
    mean = build.table("mean", [7.25], [0.123], of=("hours",), **ends)
    quantiles = build.table("quantile", [3.0, 12.5], [0.2, 0.31], keys=("0.5", "<i>0.95"))
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), mean, quantiles))
    html = page(out, truth={("plain", 1): KnownShares(TRUTH)})
    assert "Mean of hours, ± standard error, from 100 reports. 7.25 ± 0.12, 95 % interval 6.90 to 7.60" in html.words
    assert "Quantile, ± standard error, from 100 reports. 0.5 3.00 ± 0.20 <i>0.95 12.50 ± 0.31" in html.words
    assert html.count("i") == html.count("svg") == 0


def test_only_the_first_entries_of_a_long_table_are_shown(out: Path) -> None:
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), build.table("quantile", [1.0] * 50, [0.1] * 50)))
    assert "The first 20 of 50 entries." in page(out).words


def test_bins_of_a_number_are_in_the_order_of_its_range(out: Path) -> None:
    number = {"domain": {"number": {"low": 0, "high": 8}}, "mechanism": {"name": "block", "epsilon": 1.0, "bins": 4}}
    spec = build.MINIMAL | number
    statistic = build.pane([100], key=("c", 1), device_digest=CollectionSpec.parse(spec).device_digest)
    shares = build.tables([0.1, 0.2, 0.3, 0.4], [0.01] * 4)
    save(out, spec, Fired(statistic, build.estimate(statistic, [], [], tables=shares, mechanism="block")))
    words = page(out).words
    assert "All 4 bins, in % of users" in words
    assert "0 to 2 10.0 – 2 to 4 20.0 – 4 to 6 30.0 – 6 to 8 40.0 –" in words


def test_the_distribution_of_a_number_is_a_histogram_and_a_curve_with_quantiles(out: Path) -> None:
    """Shares of .1, .2, .3 and .4: bars of a quarter to the whole height, and a curve through their sums."""
    number = {"domain": {"number": {"low": 0, "high": 8}}, "mechanism": {"name": "block", "epsilon": 1.0, "bins": 4}}
    spec = build.MINIMAL | number
    statistic = build.pane([100], key=("c", 1), device_digest=CollectionSpec.parse(spec).device_digest)
    shares = [replace(each, whole=True) for each in build.tables([0.1, 0.2, 0.3, 0.4], [0.01] * 4)]
    ends: dict[str, Any] = {"low": build.floats(4.0), "high": build.floats(6.0), "basis": Basis.NORMAL}
    median = build.table("quantile", [5.0], [0.5], keys=("0.5",), **ends)
    save(out, spec, Fired(statistic, build.estimate(statistic, [], [], tables=[*shares, median], mechanism="block")))
    html = page(out)
    assert html.all("d")[:4] == [
        "M0 100L0 75L250 75L250 50L500 50L500 25L750 25L750 0L1000 0L1000 100Z",
        "M0 100L250 90L500 70L750 40L1000 0",
        "M500 50H750",
        "M625 50v50",
    ]
    assert "of which the fullest has 40 %" in html.words
    assert "The upright lines are the quantiles 0.5, with their intervals." in html.words
