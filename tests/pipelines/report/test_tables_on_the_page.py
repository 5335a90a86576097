"""The page with tables without intervals, of records, and of other quantities than shares."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.pipelines.report.test_page import TRUTH, Fired, page, pum_fired, pum_spec, rr_fired, rr_spec, save
from tests.read_page import Page
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Basis, Table


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def with_tables(fired: Fired, *tables: Table) -> Fired:
    return fired._replace(estimate=replace(fired.estimate, tables=tables))


def ends(low: list[float], high: list[float], basis: Basis = Basis.NORMAL) -> dict[str, Any]:
    """The fields of a table with intervals."""
    return {"low": build.floats(*low), "high": build.floats(*high), "basis": basis}


def page_of(out: Path, keys: dict[str, Any], *tables: Table) -> Page:
    """The page of a window of a spec with these keys."""
    spec = build.MINIMAL | keys
    statistic = build.pane([100], key=("c", 1), device_digest=CollectionSpec.parse(spec).device_digest)
    estimate = build.estimate(statistic, [], [], tables=tables, mechanism=spec["mechanism"]["name"])
    save(out, spec, Fired(statistic, estimate))
    return page(out)


@pytest.mark.parametrize("known", [False, True])
def test_a_table_may_have_no_intervals(out: Path, known: bool) -> None:
    bare = (replace(each, low=None, high=None, basis=Basis.NONE) for each in rr_fired(rr_spec()).estimate.tables)
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *bare))
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
    tables = build.tables([0.5] * 30, [0.1] * 30, **ends([0.125] * 30, [0.875] * 30, Basis.EXACT))
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *tables))
    assert "12 to 88" in page(out).words


def test_zones_are_shares_and_the_largest_are_shown(out: Path) -> None:
    names = tuple(f"home/{i}" for i in range(30))
    of_zones = ends([0.0] * 30, [0.125] * 30)
    zones = build.table("zone", np.linspace(0.001, 0.03, 30), [0.01] * 30, keys=names, **of_zones)
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), *build.tables([1 / 30] * 30, [0.01] * 30), zones))
    words = page(out).words
    assert "Zones behind tags, in % of users. The largest 20 of 30 entries." in words
    assert "home/29 3.0 % 1.0 % 0.0 to 12.5 %" in words
    assert "home/9 " not in words


def test_each_attribute_of_a_record_has_shares_and_tags_of_its_own(out: Path) -> None:
    apps = build.tables([0.2, 0.8], [0.01] * 2, {"home": (0.0712, 0.0123)}, of=("app",))
    days = build.tables([0.25] * 4, [0.01] * 4, of=("<b>day",))
    save(out, pum_spec(), with_tables(pum_fired(), *apps, *days))
    html = page(out, truth={("pum", 1): KnownShares(TRUTH)})
    assert "app 100 reports All 2 values, in % of users, without intervals" in html.words
    assert "<b>day 100 reports All 4 values" in html.words
    assert "home 7.12 1.23" in html.words
    assert html.count("b") == 0


def test_other_tables_are_plain(out: Path) -> None:
    mean = build.table("mean", [7.25], [0.123], of=("hours",), **ends([6.9], [7.6]))
    quantiles = build.table("quantile", [3.0, 12.5], [0.2, 0.31], of=("hours",), keys=("0.5", "<i>0.95"))
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), mean, quantiles))
    html = page(out, truth={("plain", 1): KnownShares(TRUTH)})
    assert "hours 100 reports Mean 7.25 ± 0.12 95 % interval 6.90 to 7.60" in html.words
    assert "Quantiles. Quantiles Estimate Standard error 0.5 3.00 0.20 <i>0.95 12.50 0.31" in html.words
    assert html.count("i") == html.count("svg") == 0


def test_only_the_first_entries_of_a_long_table_are_shown(out: Path) -> None:
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), build.table("quantile", [1.0] * 50, [0.1] * 50)))
    assert "The first 20 of 50 entries." in page(out).words


def test_the_distribution_of_a_number_is_a_histogram_and_a_curve_with_quantiles(out: Path) -> None:
    """Shares of .1, .2, .3 and .4: bars of a quarter to the whole height, and a curve through their sums."""
    number = {"domain": {"number": {"low": 0, "high": 8}}, "mechanism": {"name": "block", "epsilon": 1.0, "bins": 4}}
    shares = [replace(each, whole=True) for each in build.tables([0.1, 0.2, 0.3, 0.4], [0.01] * 4)]
    median = build.table("quantile", [5.0], [0.5], keys=("0.5",), **ends([4], [6]))
    html = page_of(out, number, *shares, median)
    assert paths(html) == [
        "M0 100L0 75L250 75L250 50L500 50L500 25L750 25L750 0L1000 0L1000 100Z",
        "M0 100L250 90L500 70L750 40L1000 0",
        "M500 50H750",
        "M625 50V100",
    ]
    assert "40 % 0" in html.words
    assert "The upright lines are the quantiles 0.5, with their intervals." in html.words
    assert "All 4 bins, in % of users" in html.words
    assert "0 to 2 10.0 – 2 to 4 20.0 – 4 to 6 30.0 – 6 to 8 40.0 –" in html.words


def paths(html: Page) -> list[str]:
    """The paths of a figure of bins, without the lines of its ground."""
    return [d for d in html.all("d") if not d.startswith("M0 0H")]


def test_the_curve_of_values_in_an_order_has_its_band_and_ranges_are_in_percent(out: Path) -> None:
    """Four sizes of shirts: the share up to each of the first three is measured, and nobody is above the last."""
    shirts = {"domain": {"labels": ["S", "M", "L", "<b>XL"]}, "mechanism": {"name": "tree", "epsilon": 1.0}}
    (share,) = build.tables([0.1, 0.2, 0.3, 0.4], [0.01] * 4)
    band = ends([0.0, 0.2, 0.5], [0.2, 0.4, 0.7])
    below = build.table("below", [0.1, 0.3, 0.6], [0.05] * 3, keys=("S", "M", "L"), **band)
    large = build.table("range", [0.7], [0.05], keys=("L to <b>XL",), **ends([0.5], [0.75]))
    median = build.table("quantile", [2.0], [0.5], keys=("0.5",), **ends([1], [3]))
    html = page_of(out, shirts, replace(share, whole=True), large, below, median)
    assert paths(html)[1:] == [
        "M0 100L250 100L500 80L750 50L1000 0L1000 0L750 30L500 60L250 80L0 100Z",
        "M0 100L250 90L500 70L750 40L1000 0",
        "M375 50H875",
        "M625 50V100",
    ]
    assert "with the band of its 95 % intervals" in html.words
    assert "L to <b>XL 70.0 % 5.0 % 50.0 to 75.0 %" in html.words
    assert "0.5 L M to <b>XL" in html.words
    assert html.count("b") == 0


def test_who_ranks_whom_above_is_a_matrix_of_colours(out: Path) -> None:
    votes = {"domain": {"ranking": {"of": ["<b&mail", "maps"]}}, "mechanism": {"name": "pairs", "epsilon": 1.0}}
    shares = ends([0, 0.6, 0.1, 0], [0, 0.9, 0.4, 0], Basis.EXACT)
    beats = build.table("beats", [0.0, 0.75, 0.25, 0.0], [0.0, 0.1, 0.1, 0.0], shape=(2, 2), **shares)
    score = build.table("score", [0.75, 0.25], [0.1, 0.1], keys=("<b&mail", "maps"))
    html = page_of(out, votes, score, beats)
    assert "<b&mail maps <b&mail – 75 60 to 90 maps 25 10 to 40 –" in html.words
    assert [name for name in html.all("class") if name.startswith(("more", "less"))] == ["more-2", "less-2"]
    assert "score of <b&mail 0.75±0.10" in html.words
    assert html.count("strong") == 2 + 1  # both intervals are on one side of a half; the third is that of the guarantee
    assert html.count("b&mail") == 0


def test_a_matrix_of_another_size_is_a_list(out: Path) -> None:
    save(out, rr_spec(), with_tables(rr_fired(rr_spec()), build.table("beats", [0.5, 0.25], [0.1, 0.1])))
    assert "Users who rank one above the other, in %. Users who rank one above the other" in page(out).words


def test_what_was_found_of_strings_is_said_in_percent(out: Path) -> None:
    """Of candidates with 40, 30 and 2 %, the first two were found, and 28 % of users hold none."""
    share = build.table("share", [0.4, 0.3, 0.02], [0.01] * 3, keys=("news", "mail", "maps"))
    found = build.table("found", [1.0, 1.0, 0.0], [0.0] * 3, keys=("news", "mail", "maps"))
    p_value = build.table("p_value", [0.0, 0.0, 0.4], [0.0] * 3, keys=("news", "mail", "maps"))
    unexplained = build.table("unexplained", [0.28], [0.015], **ends([0.25], [0.31]))
    strings = {"domain": {"strings": {"longest": 16}}, "mechanism": {"name": "bloom", "epsilon": 3.0}}
    words = page_of(out, strings | {"candidates": ["news", "mail", "maps"]}, share, unexplained, p_value, found).words
    assert "2 of 3 candidates were found; 70.0 % of users hold them." in words
    assert "Unexplained 28.0 % ± 1.5 % 95 % interval 25.0 to 31.0 %" in words
