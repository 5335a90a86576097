"""The page: its contents, its links, and labels as text."""

import hashlib
import json
import math
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from tests.pane_files import estimate_file, statistic_file
from tests.read_page import Page
from uldp.schemas.arrays import Floats
from uldp.schemas.errors import RequestError
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.results.names import stored_file

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from uldp.pipelines.report.page import report_page, write_page
from uldp.pipelines.report.shares import Scale
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.simulation.truth import KnownShares
from uldp.schemas.estimate import Estimate
from uldp.schemas.framing import load_schema
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Missing
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.statistic import Statistic
from uldp.schemas.table import Basis, Table

HOSTILE = "</title><script>alert(1)</script>"
LABELS = [HOSTILE, "<img src=x onerror=alert(1)>", '" onmouseover="alert(1)', "日本語", *map(str, range(4, 30))]
TRUTH = np.arange(30, 0, -1) / np.arange(1, 31).sum()


def rr_spec(name: str = "plain", size: int = 30, epsilon: float = 2.0) -> dict[str, Any]:
    domain = {"labels": LABELS} if size == 30 else {"size": size}
    return build.MINIMAL | {"collection": name, "domain": domain, "mechanism": {"name": "rr", "epsilon": epsilon}}


def pum_spec() -> dict[str, Any]:
    return rr_spec("pum") | {
        "sensitive": [3, 4],
        "mechanism": {"name": "urr", "epsilon": 2.0},
        "tags": [{"name": "home"}, {"name": "others"}],
    }


class Fired(NamedTuple):
    """A pane: its statistic, and one estimate."""

    statistic: Statistic
    estimate: Estimate

    def but(self, **fields: Any) -> "Fired":
        """The pane with other fields in the header of both."""
        return Fired(replace(self.statistic, **fields), replace(self.estimate, **fields))


def rr_fired(spec: dict[str, Any], *, n: int = 20_000, window: int = 0, seed: int = 1) -> Fired:
    """An unbiased estimate from simulated counts of randomized response, by the formulas of the literature."""
    size, odds = CollectionSpec.parse(spec).size, math.exp(spec["mechanism"]["epsilon"])
    truth = np.arange(size, 0, -1) / np.arange(1, size + 1).sum()
    p, q = odds / (odds + size - 1), 1 / (odds + size - 1)
    counts = np.random.default_rng(seed).multinomial(n, q + (p - q) * truth)
    accounting = Accounting(n + 60, n, 30, 20, 10)
    header: dict[str, Any] = {"accounting": accounting, "device_digest": CollectionSpec.parse(spec).device_digest}
    statistic = build.pane(counts, revision=3, start=START + window * HOUR, key=(spec["collection"], 1), **header)
    m = counts / n
    stderr = np.sqrt(m * (1 - m) / n) / (p - q)
    # Wilson's interval of a proportion, mapped like the proportion itself.
    z = 1.959964
    centre, half = m + z**2 / (2 * n), z * np.sqrt(m * (1 - m) / n + z**2 / (4 * n**2))
    low, high = (((centre + sign * half) / (1 + z**2 / n) - q) / (p - q) for sign in (-1, 1))
    named = {"estimator": "empirical", "epsilon": spec["mechanism"]["epsilon"]}
    tables = build.tables((m - q) / (p - q), stderr, n=n, low=low, high=high, basis=Basis.NORMAL)
    return Fired(statistic, build.estimate(statistic, [], [], tables=tables, **named))


def pum_fired() -> Fired:
    plain = rr_fired(rr_spec())
    cells = np.append(plain.statistic.cells, [400, 300])
    statistic = build.pane(
        cells, revision=3, key=("pum", 1), device_digest=CollectionSpec.parse(pum_spec()).device_digest
    )
    shares = build.shares_of(plain.estimate)
    tags = {"home": (0.0712, 0.0123), "others": (0.0301, 0.0112)}
    ends: dict[str, Any] = {"low": shares.low, "high": shares.high, "basis": shares.basis}
    share, *others = build.tables(shares.values, shares.stderr, tags, n=statistic.n)
    tables = (replace(share, **ends), *others)
    return Fired(statistic, build.estimate(statistic, [], [], tables=tables, mechanism="urr"))


def ends_of(table: Table | None) -> tuple[Floats, Floats]:
    """The ends of the intervals of a table that has some."""
    assert table is not None
    assert table.low is not None
    assert table.high is not None
    return table.low, table.high


def save(out: Path, spec: dict[str, Any], *fired: Fired) -> None:
    directory = out / "specs" / f"{spec['collection']}-v1"
    directory.mkdir(parents=True)
    # JSON is YAML.
    (directory / "spec.yaml").write_text(json.dumps(spec))
    for statistic, estimate in fired:
        for name, content in (statistic_file(statistic), estimate_file(estimate)):
            write_file(str(out / name), content)


def page(out: Path, **options: Any) -> Page:
    html = report_page(ResultsFolder(out), made=START, **options)
    write_page(html, out.parent / "report.html")
    return Page(html)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


class TestPage:
    def test_needs_nothing_else(self, out: Path) -> None:
        save(out, rr_spec(), rr_fired(rr_spec()))
        html = page(out, truth={("plain", 1): KnownShares(TRUTH)})
        assert html.count("script") == 1
        assert html.count("link") == 0
        assert all(source.startswith("data:image/svg+xml;base64,") for source in html.all("src"))
        assert all(reference.startswith("#") for reference in html.all("href"))
        policy = html.all("content")[0]
        assert "default-src 'none'" in policy
        assert f"script-src 'sha256-{b64encode(hashlib.sha256(html.script.encode()).digest()).decode()}'" in policy

    def test_links_lead_somewhere_and_images_say_what_they_show(self, out: Path) -> None:
        save(out, rr_spec(), *(rr_fired(rr_spec(), window=window) for window in range(3)))
        html = page(out)
        identifiers = html.all("id")
        assert len(set(identifiers)) == len(identifiers)
        assert {reference[1:] for reference in html.all("href")} <= set(identifiers)
        assert set(html.all("aria-labelledby")) <= set(identifiers)
        images = [attributes for tag, attributes in html.tags if tag == "img"]
        assert len(images) == 3
        assert all(image["alt"] for image in images)

    def test_hostile_labels_are_text(self, out: Path) -> None:
        save(out, rr_spec(), rr_fired(rr_spec()).but(flags=("<script>flag</script>",)))
        html = page(out)
        assert html.count("script") == 1
        assert HOSTILE not in html.script
        assert not html.all("onerror") + html.all("onmouseover")
        assert all(text in html.text for text in [HOSTILE, *LABELS[:4], "<script>flag</script>"])

    def test_the_same_input_gives_the_same_bytes(self, out: Path) -> None:
        save(out, pum_spec(), pum_fired())
        assert report_page(ResultsFolder(out), made=START) == report_page(ResultsFolder(out), made=START)

    def test_a_chapter_for_each_collection(self, out: Path) -> None:
        save(out, pum_spec(), pum_fired())
        save(out, rr_spec(), rr_fired(rr_spec()))
        html = page(out)
        assert html.count("article") == 2
        assert {"pum-v1", "plain-v1"} <= set(html.all("id"))


class TestContents:
    def test_facts(self, out: Path) -> None:
        save(out, pum_spec(), pum_fired())
        words = page(out).words
        for fact in (
            "utility-optimized randomized response (uRR)",
            "2 per report",
            "Values, |X| 30",
            "Sensitive values, |XS| 2",
            "home (no background), others (no background)",
            "Window 1h",
        ):
            assert fact in words

    def test_windows_without_an_estimate_are_named(self, out: Path) -> None:
        stopping = rr_spec() | {"limits": {"max_rejected_ratio": 0.1, "when_exceeded": "stop"}}
        published, later = rr_fired(rr_spec()), rr_fired(rr_spec(), window=1)
        received = replace(later.statistic.accounting, received=40_060, rejected=20_010)
        stopped = replace(later.statistic, accounting=received, flags=("rejected_ratio",))
        save(out, stopping, published, Fired(stopped, later.estimate))
        found = page(out)
        assert "plain version 1 2026-01-01 10:00 to 11:00 UTC 20,000 20,010 rejected_ratio" in found.words
        assert found.count("article") == 1  # what was published of the later window is not current

    def test_window(self, out: Path) -> None:
        save(out, rr_spec(), rr_fired(rr_spec()).but(flags=("rejected_ratio",)))
        words = page(out).words
        assert "2026-01-01 09:00 to 10:00 UTC empirical" in words
        assert "20,060 received = 20,000 counted + 30 duplicate + 20 late + 10 rejected." in words
        assert "Reasons to distrust this window: rejected_ratio." in words

    def test_tags_and_their_bound(self, out: Path) -> None:
        save(out, pum_spec(), pum_fired())
        words = page(out).words
        assert "home 7.12 1.23 others 3.01 1.12" in words
        assert "can cost at most 0.203 in l1 (Theorem 1)" in words

    def test_distance_and_coverage(self, out: Path) -> None:
        fired = rr_fired(rr_spec())
        shares = build.shares_of(fired.estimate)
        save(out, rr_spec(), fired)
        words = page(out, truth={("plain", 1): KnownShares(TRUTH)}).words
        low, high = ends_of(shares)
        covered = (low <= TRUTH) & (high >= TRUTH)
        assert 0.8 < np.mean(covered) < 1, "the seed should make some intervals miss"
        l1 = np.abs(shares.values - TRUTH).sum()
        assert f"distance to the truth {l1:.3f}." in words
        # The list of windows has half of an interval, and no error of another estimate than the published one.
        assert "±, in points" in words
        assert f" {100 * np.mean(high - low) / 2:.3g} {l1:.3f} {100 * np.mean(covered):.1f} " in words
        assert "expected" not in words.lower()
        figure = f"{100 * np.mean(covered):.1f}"
        assert f"Intervals of all values of those that users hold share {figure} {figure}" in words
        assert "of those that users hide" not in words

    def test_the_largest_values_with_interval_and_truth(self, out: Path) -> None:
        fired = rr_fired(rr_spec(), n=200_000)
        shares = build.shares_of(fired.estimate)
        save(out, rr_spec(), fired)
        html = page(out, truth={("plain", 1): KnownShares(TRUTH)})
        assert html.count("svg") == 20
        largest = int(np.argmax(shares.values))
        columns = (each for each in (shares.values, shares.low, shares.high, TRUTH) if each is not None)
        share, low, high, true = (f"{100 * each[largest]:.2f}" for each in columns)
        assert f"{LABELS[largest]} {share} {low} to {high} {true}" in html.words

    def test_rejections_by_reason(self, out: Path) -> None:
        save(out, rr_spec(), rr_fired(rr_spec()))
        assert "Rejected reports" not in page(out).words
        rejected = [
            Rejected("decode", reason, "", (b"",), {}, (START,), f"s:{number}", 1, "0.1.0")
            for number, reason in enumerate(("truncated", "not_avro", "not_avro", "of_tomorrow"))
        ]
        (out / "rejected").mkdir()
        with (out / "rejected/a.avro").open("wb") as file:
            fastavro.writer(file, load_schema("rejected"), [value.to_avro() for value in rejected])
        words = page(out).words
        assert "not_avro 2 the message does not begin with" in words
        assert words.index("not_avro") < words.index("of_tomorrow 1") < words.index("truncated 1 the message ends")

    def test_missing_messages_by_source(self, out: Path) -> None:
        lossy = rr_fired(rr_spec()).but(flags=("missing_reports",))
        save(out, rr_spec(), lossy)
        assert "Missing messages" not in page(out).words
        records = [Missing("t/1", 5, 9, 0, 0), Missing("t/0", 1, 1200, 0, 0), Missing("t/1", 7, 11, 0, 0)]
        (out / "missing").mkdir()
        for record in records:
            name, content = stored_file("missing", [encode_record("missing", record.to_avro())], "missing")
            write_file(str(out / name), content)
        words = page(out).words
        assert "Source Messages t/0 1,200 t/1 7" in words
        assert "Reasons to distrust this window: missing_reports." in words


class TestErrors:
    @pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
    def test_a_missing_extra(self, out: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        out.mkdir()
        with pytest.raises(RequestError, match=rf"needs {package}; install it: pip install 'uldp-stream\[report\]"):
            page(out)


@given(st.lists(st.floats(-2, 2).map(lambda x: x**5), min_size=1).filter(any))
def test_a_scale_holds_zero_and_every_share_and_has_some_round_ticks(shares: list[float]) -> None:
    scale = Scale.covering(shares)
    assert all(-0.01 <= float(scale(share)) <= 100.01 for share in [0.0, *shares])
    assert 2 <= len(scale.ticks) <= 7
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)
