"""Maps on the page: where each cell is, its colour and its figures, and what bounds them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.pipelines.report.test_page import LABELS, TRUTH, ends_of, page, pum_spec, rr_fired, rr_spec, save
from tests.pipelines.report.test_tags_on_the_page import TRUTH as TRUTH_OF_TAGS
from tests.pipelines.report.test_tags_on_the_page import fired as pum_fired
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.report import chapters
from uldp.pipelines.report.maps import MOST, STEPS, Grid, maps_of
from uldp.pipelines.report.received import received_of
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.arrays import Floats
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

KNOWN = {("plain", 1): KnownShares(TRUTH)}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def on_a_grid(spec: dict[str, Any], columns: int = 6) -> dict[str, Any]:
    return spec | {"domain": spec["domain"] | {"columns": columns}}


def titles(html: str) -> list[list[tuple[int, int, int, str]]]:
    """Of each map its squares: x, y, step and title."""
    square = r'<rect x="(\d+)" y="(\d+)" width="1" height="1" class="m(\d)"><title>(.*?)</title></rect>'
    maps = re.findall(r'<svg class="map".*?</svg>', html)
    return [[(int(x), int(y), int(step), text) for x, y, step, text in re.findall(square, each)] for each in maps]


def headings(html: str) -> list[str]:
    return re.findall(r'<p class="title"><strong>(.*?)</strong>', html)


def source(out: Path) -> str:
    return (out.parent / "report.html").read_text(encoding="utf-8")


def assert_rounded(text: str, number: float) -> None:
    """The text is the number, rounded to some decimals."""
    _, _, decimals = text.partition(".")
    assert len(decimals) >= 1
    assert abs(float(text.replace("−", "-")) - number) <= 0.5001 * 10 ** -len(decimals)


SHAPES = [(2, 2), (30, 6), (625, 25), (2_500, 50), (2_550, 50), (12_800, 128), (1 << 20, 2), (1 << 20, 1 << 20)]


@pytest.mark.parametrize(("size", "columns"), SHAPES)
def test_each_cell_is_in_one_of_a_few_squares(size: int, columns: int) -> None:
    grid, shares = Grid(size, columns), np.random.default_rng(1).dirichlet(np.ones(size))
    sums = grid.sums(shares)
    assert len(sums) == len(grid.places()) == len(set(grid.places())) <= MOST
    assert sums.sum() == pytest.approx(1)
    assert (grid.side == 1) == (size <= MOST)
    assert all(0 <= x < grid.width and 0 <= y < grid.height for x, y in grid.places())


@pytest.mark.parametrize("domain", [{"labels": LABELS}, {"size": 40}])
def test_values_that_are_no_cells_have_no_map(out: Path, domain: dict[str, Any]) -> None:
    spec = rr_spec(size=40) | {"domain": domain}
    save(out, spec, rr_fired(spec))
    assert page(out).all("class").count("map") == 0
    assert headings(source(out)) == []


def test_squares_have_names_and_figures(out: Path) -> None:
    fired = rr_fired(on_a_grid(rr_spec()))
    save(out, on_a_grid(rr_spec()), fired)
    page(out, truth=KNOWN)
    received, estimate, truth = titles(source(out))
    shares = build.shares_of(fired.estimate)
    low, high = ends_of(shares)
    for i in range(30):
        assert [(x, y) for x, y, _, _ in (received[i], estimate[i], truth[i])] == [(i % 6, 4 - i // 6)] * 3
    for i in range(4, 30):
        assert received[i][3].startswith(f"{i}: ")
        assert_rounded(received[i][3].split()[1], 100 * fired.statistic.cells[i] / fired.statistic.n)
        assert truth[i][3] == f"{i}: {100 * TRUTH[i]:.2f} %"
        figures = f"{100 * shares.values[i]:z.2f} % ({100 * low[i]:z.2f} to {100 * high[i]:z.2f})"
        assert estimate[i][3] == f"{i}: {figures.replace('-', '−')}"


def steps_of(shares: Floats) -> list[int]:
    """The step of each square by the rule that the legend states."""
    ends = [float(shares.max()) * (step / STEPS) ** 2 for step in range(1, STEPS)]
    return [sum(share >= end for end in ends) for share in shares.tolist()]


def test_colours_are_steps_of_one_scale_for_estimate_and_truth(out: Path) -> None:
    fired = rr_fired(on_a_grid(rr_spec()), n=2_000_000)
    save(out, on_a_grid(rr_spec()), fired)
    html = page(out, truth=KNOWN)
    _, estimate, truth = titles(source(out))
    shares = build.shares_of(fired.estimate).values
    found = [step for squares in (estimate, truth) for _, _, step, _ in squares]
    assert found == steps_of(np.concatenate([shares, TRUTH]))
    assert set(found) >= {1, 2, 3, 4, 5}
    most = 100 * max(shares.max(), TRUTH.max())
    assert html.words.count(f"0.0 0.2 0.7 1.6 2.9 4.5 {most:.1f} %") == 2


def test_sensitive_cells_are_outlined(out: Path) -> None:
    save(out, on_a_grid(pum_spec()), pum_fired(CollectionSpec.parse(on_a_grid(pum_spec()))))
    page(out)
    outlines = re.findall(r'<path class="outline" d="(.*?)"/>', source(out))
    assert outlines == ["M3.08 4.08h.84v.84h-.84zM4.08 4.08h.84v.84h-.84z"] * 3
    assert [text.partition(":")[0] for *_, text in titles(source(out))[0] if "sensitive" in text] == [
        f"{LABELS[3]}, sensitive",
        "4, sensitive",
    ]
    assert "Outlined: sensitive." in page(out).words


@pytest.mark.parametrize(
    ("tags", "where"),
    [
        ([], "where the other users are: "),
        (["home"], "where background knowledge expects them or, without any, the other users are: "),
        (["home", "others"], "where background knowledge expects them: "),
    ],
)
def test_two_sentences_say_what_is_behind_tags(out: Path, tags: list[str], where: str) -> None:
    spec = on_a_grid(pum_spec())
    fired = pum_fired(CollectionSpec.parse(spec))
    known = [{"name": name} | ({"background": "b.csv"} if name in tags else {}) for name in ("home", "others")]
    save(out, spec | {"tags": known}, fired)
    (out / "specs" / "pum-v1" / "b.csv").write_text("value,weight\n5,1\n", encoding="utf-8")
    words = page(out, truth=TRUTH_OF_TAGS).words
    assert headings(source(out)) == ["Received", "Visible", "Estimate", "Truth"]
    hidden = fired.estimate.table(TableName.HIDDEN)
    low, high = ends_of(hidden)
    assert hidden is not None
    home, others = (f"{100 * hidden.values[i]:.1f} % ({100 * low[i]:.1f} to {100 * high[i]:.1f})" for i in (0, 1))
    assert "A user who hides a cell of her own reports a tag in its place, home or others; the device obfusc" in words
    total = f"{100 * hidden.values.sum():.1f} % of the users in this window"
    assert f"puts them back {where}{total}, home {home} and others {others}." in words
    assert words.index("puts them back") < words.index("Mechanism")


def test_a_table_below_has_what_the_maps_show(out: Path) -> None:
    spec = on_a_grid(rr_spec(size=12, epsilon=6.0))
    fired, truth = rr_fired(spec), np.arange(12, 0, -1) / np.arange(1, 13).sum()
    save(out, spec, fired)
    words = page(out, truth={("plain", 1): KnownShares(truth)}).words
    _, _, table = words.partition("All 12 values in the last window")
    assert "Value Estimate Low High Truth Received " in table[:400]
    shares = build.shares_of(fired.estimate)
    largest = int(np.argmax(shares.values))
    figures = (shares.values, shares.low, shares.high, truth, fired.statistic.cells / fired.statistic.n)
    (row,) = re.findall(rf" {largest} ((?:−?[\d.]+ ){{5}})", table)
    for text, each in zip(row.split(), figures, strict=True):
        assert each is not None
        assert_rounded(text, 100 * each[largest])
    assert words.count("All 12 values in the last window") == 1


def test_windows_before_have_a_map_of_their_estimate_up_to_a_bound(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = on_a_grid(rr_spec())
    save(out, spec, *(rr_fired(spec, window=window) for window in range(5)))
    assert "have no map" not in page(out, truth=KNOWN).words
    assert headings(source(out)) == ["Received", "Estimate", "Truth", *["Estimate"] * 4]
    monkeypatch.setattr(chapters, "MOST_SQUARES", 60)
    assert "Of these windows, 2 have no map, so that the page stays small." in page(out).words
    assert headings(source(out)) == ["Received", *["Estimate"] * 3]


def test_a_large_grid_is_drawn_in_blocks(out: Path) -> None:
    spec = rr_spec(size=10_000, epsilon=9.0) | {"domain": {"size": 10_000, "columns": 100}}
    fired = rr_fired(spec, n=1_000_000)
    save(out, spec, fired)
    said = "Each square is the sum of 2 × 2 cells, or their mean of what was received, so that the page stays small."
    assert said in page(out).words
    received, estimate = titles(source(out))
    assert len(received) == len(estimate) == 2_500
    block, values = [0, 1, 100, 101], build.shares_of(fired.estimate).values
    mean = fired.statistic.cells[block].mean() / fired.statistic.n
    for text, share in ((received[0][3], mean), (estimate[0][3], values[block].sum())):
        name, _, figure = text.partition(": ")
        assert name == "rows 0 to 1, columns 0 to 1"
        assert_rounded(figure.removesuffix(" %"), 100 * share)


@pytest.mark.parametrize("share", [0.0, -0.01])
def test_maps_of_nobody_can_be_drawn(share: float) -> None:
    spec = build.spec(domain={"size": 6, "columns": 3})
    (maps,) = maps_of(build.estimate(build.pane([1] * 6), [share] * 6, [0.01] * 6), spec, {}, None)
    assert maps.drawn[0].squares.count('class="m0"') == 6
    assert maps.below == (share < 0)


def test_attributes_of_a_record_have_maps_of_their_own() -> None:
    spec = build.spec(
        domain={"record": {"place": {"size": 6, "columns": 3}, "app": {"labels": ["a", "b"]}}},
        mechanism={"name": "sample-one", "epsilon": 2.0, "of": {"place": {"name": "oue"}, "app": {"name": "rr"}}},
    )
    example_cells, n = draw(spec, 3_000)
    statistic = build.pane(example_cells, device_digest=spec.device_digest, accounting=Accounting(n, n))
    received = received_of(statistic, spec)
    tables = build_protocol(spec).decoder.tables(statistic.cells, n, "auto")
    (maps,) = maps_of(build.estimate(statistic, [], [], tables=tables), spec, received, None)
    assert (maps.of, [each.title for each in maps.drawn]) == (" of place", ["Received", "Estimate"])
    assert set(received) == {("place",), ("app",)}


def draw(spec: CollectionSpec, n: int) -> tuple[Any, int]:
    """The cells of n reports of users who all hold the first value of each variable."""
    protocol, held = build_protocol(spec), np.zeros(n, dtype=np.int64)
    columns = [Held(held, held - 1) for _ in [*spec.variables, *(spec.by or ())]]
    return protocol.mechanism.statistic(protocol.perturb(columns, np.random.default_rng(5))), n


def test_what_was_received_by_slices_is_added() -> None:
    keys: Mapping[str, Any] = {"mechanism": {"name": "rr", "epsilon": 2.0}, "domain": {"size": 6, "columns": 3}}
    spec = build.spec(**keys, by={"os": ["ios", "android"]})
    cells, n = draw(spec, 3_000)
    statistic = build.pane(cells, device_digest=spec.device_digest, accounting=Accounting(n, n))
    ((of, (shares, reports)),) = received_of(statistic, spec).items()
    assert reports == n
    assert (of, shares.shape, shares.sum()) == ((), (6,), pytest.approx(1))
    assert int(np.argmax(shares)) == 0
