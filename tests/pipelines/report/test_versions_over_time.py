"""The lines of all versions of a collection together, above those of each."""

import json
from pathlib import Path

import pytest

from tests import build
from tests.pipelines.report.test_page import page
from tests.pipelines.results.test_pooled import RR, pooled_in, save, version
from uldp.pipelines.results.tables import decimals, percent
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

OLD, NEW = [200, 150, 100], [60, 30, 20]


def with_specs(out: Path, **keys: object) -> tuple[CollectionSpec, CollectionSpec]:
    """Write the specs of two versions, of which the second has further keys."""
    for number, epsilon, more in ((1, 1.0, {}), (2, 3.0, keys)):
        spec = build.MINIMAL | RR | {"version": number, "mechanism": {"name": "rr", "epsilon": epsilon}} | more
        (folder := out / f"specs/c-v{number}").mkdir(parents=True)
        (folder / "spec.yaml").write_text(json.dumps(spec))  # JSON is YAML
    return version(1), version(2, 3.0, **keys)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_a_point_of_all_versions_is_their_pooled_estimate(out: Path, tmp_path: Path) -> None:
    """Reports of both versions on one day, and the pooled estimate of one window that has them all."""
    old, new = with_specs(out)
    save(out, old, OLD, window=0)
    save(out, new, NEW, window=1)
    for spec, cells in ((old, OLD), (new, NEW)):
        save(tmp_path / "one", spec, cells)
    (pooled,), _ = pooled_in(tmp_path / "one", old, new)
    share = pooled.estimate.table(TableName.SHARE)
    assert share is not None
    assert share.low is not None
    assert share.high is not None
    places = decimals(share.stderr[:1])
    figures = [percent(float(each[0]), places) for each in (share.values, share.low, share.high)]
    words = page(out, every="1d").words
    assert f"red {figures[0]}, {figures[1]} to {figures[2]} %" in words
    assert "All versions together, pooled where several have reports, the sum of each day, in UTC." in words
    assert words.index("All versions over time") < words.rindex("c version 1")


def test_lines_go_on_from_version_to_version(out: Path) -> None:
    old, new = with_specs(out)
    for window, counted in enumerate([(old,), (old, new), (new,)]):
        for spec in counted:
            save(out, spec, OLD if spec is old else NEW, window=window)
    words = page(out).words
    together = words.partition("All versions over time")[2].partition("This version over time")[0]
    assert "reports 110 0 to 560" in together


def test_messages_that_the_stream_lost_are_not_added_over_versions(out: Path) -> None:
    old, new = with_specs(out)
    save(out, old, OLD, missing=7)
    save(out, new, NEW, missing=9)
    missing = 9 / (sum(OLD) + 3 + sum(NEW) + 3 + 9)
    assert f"missing, at most {percent(missing, 2)} %" in page(out).words


def test_versions_that_cannot_be_pooled_have_lines_of_their_own_alone(out: Path) -> None:
    old, new = with_specs(out, domain={"labels": ["red", "green", "pink"]})
    for window in (0, 1):
        save(out, old, OLD, window=window)
        save(out, new, NEW, window=window)
    words = page(out).words
    assert "All versions" not in words
    assert words.count("Over time") == 2
