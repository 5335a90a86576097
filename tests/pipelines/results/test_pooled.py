"""Pooled estimates of the versions in a results directory: which windows have one, of what, and how it is written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from tests.pane_files import estimate_file, statistic_file
from tests.pipelines.results.samples import folder_of
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.mechanisms.pooling.versions import difference
from uldp.pipelines.results.pooled import Pooled, pool_versions, pooled_json, pooled_text
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName
from uldp.transforms.io.durable_files import write_file

LABELS = {"labels": ["red", "green", "blue"]}
RR: dict[str, Any] = {"domain": LABELS, "limits": {"min_reports": 10}}


def version(number: int, epsilon: float = 1.0, **keys: Any) -> CollectionSpec:
    return build.spec(version=number, mechanism={"name": "rr", "epsilon": epsilon}, **(RR | keys))


def save(
    out: Path, spec: CollectionSpec, cells: list[int], *, window: int = 0, missing: int = 0, flags: tuple[str, ...] = ()
) -> None:
    """Write what a job writes about a window with these cells."""
    statistic = build.pane(
        cells,
        start=START + window * HOUR,
        key=spec.key,
        device_digest=spec.device_digest,
        accounting=Accounting(sum(cells) + 3, sum(cells), 1, 1, 1, missing),
        flags=flags,
    )
    for estimate in estimates_of(serve([spec])[spec.key], statistic):
        write_file(str(out / estimate_file(estimate)[0]), estimate_file(estimate)[1])
    write_file(str(out / statistic_file(statistic)[0]), statistic_file(statistic)[1])


def pooled_in(out: Path, *specs: CollectionSpec) -> tuple[list[Pooled], list[str]]:
    """The pooled estimates of the results, and the reasons for what is not pooled."""
    folder, reasons = folder_of(out, specs={spec.key: spec for spec in specs}), list[str]()
    found = folder.current()
    return list(pool_versions(folder.with_specs(found.estimates), found, reasons.append)), reasons


def test_a_window_of_two_versions_has_an_estimate_of_all_reports(tmp_path: Path) -> None:
    old, new = version(1), version(2, 3.0)
    save(tmp_path, old, [200, 150, 100], missing=7, flags=("duplicate_ratio",))
    save(tmp_path, new, [60, 30, 20], missing=9, flags=("improbable_counts", "duplicate_ratio"))
    (pooled,), reasons = pooled_in(tmp_path, old, new)
    assert reasons == []
    assert [each.version for each in pooled.versions] == [1, 2]
    assert pooled.estimate.n == 560
    assert pooled.estimate.accounting == Accounting(566, 560, 2, 2, 2, missing=9)  # of one stream
    assert pooled.estimate.flags == ("duplicate_ratio", "improbable_counts")
    share = pooled.estimate.table(TableName.SHARE)
    assert share is not None
    assert share.values.sum() == pytest.approx(1)
    errors = [table.stderr for each in pooled.versions if (table := each.table(TableName.SHARE)) is not None]
    assert (share.stderr < np.min(errors, axis=0)).all()


def test_each_window_is_pooled_alone_and_one_of_one_version_is_not(tmp_path: Path) -> None:
    specs = [version(1), version(2), version(3)]
    for window, counted in enumerate([(0,), (0, 1), (0, 1, 2), (1, 2)]):
        for i in counted:
            save(tmp_path, specs[i], [50, 30, 20], window=window)
    found, _ = pooled_in(tmp_path, *specs)
    assert [((each.estimate.window_start - START) // HOUR, each.title) for each in found] == [
        (1, "versions 1 and 2"),
        (2, "versions 1, 2 and 3"),
        (3, "versions 2 and 3"),
    ]


def test_a_window_that_is_withheld_is_not_pooled(tmp_path: Path) -> None:
    old, new = version(1), version(2)
    save(tmp_path, old, [50, 30, 20])
    save(tmp_path, new, [4, 3, 2], flags=("few_reports",))
    assert pooled_in(tmp_path, old, new) == ([], [])


def test_the_newest_version_decides_how_many_reports_are_enough(tmp_path: Path) -> None:
    old, new = version(1), version(2)
    save(tmp_path, old, [50, 30, 20])
    save(tmp_path, new, [50, 30, 20])
    for least, windows in ((200, 1), (201, 0)):
        found, _ = pooled_in(tmp_path, old, version(2, limits={"min_reports": least}))
        assert len(found) == windows


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"domain": {"labels": ["red", "blue", "green"]}}, "their values differ"),
        ({"domain": {"size": 3}}, "their values differ"),
        (
            {"domain": {"number": {"low": 0, "high": 1}}, "mechanism": {"name": "duchi", "epsilon": 1.0}},
            "their ranges of",
        ),
        (
            {"mechanism": {"name": "urr", "epsilon": 1.0}, "sensitive": ["red"], "tags": [{"name": "home"}]},
            "their tags",
        ),
    ],
)
def test_versions_that_differ_in_what_they_estimate_are_not_pooled(keys: dict[str, Any], reason: str) -> None:
    old, new = version(1), build.spec(version=2, **({"mechanism": {"name": "rr", "epsilon": 2.0}} | RR | keys))
    for one, other in ((old, new), (new, old)):
        assert (difference(one, other) or "").startswith(reason)


def test_a_reason_is_said_once_and_the_other_versions_are_pooled(tmp_path: Path) -> None:
    other = version(1, domain={"labels": ["red", "green", "grey"]})
    specs = [other, version(2), version(3)]
    for window in range(3):
        for spec in specs:
            save(tmp_path, spec, [50, 30, 20], window=window)
    found, reasons = pooled_in(tmp_path, *specs)
    assert [each.title for each in found] == ["versions 2 and 3"] * 3
    assert reasons == ["c: version 1 is not pooled with version 3: their values differ"]


def test_missing_counts_are_named(tmp_path: Path) -> None:
    old, new = version(1), version(2)
    for spec in (old, new):
        save(tmp_path, spec, [50, 30, 20])
    (path,) = (tmp_path / "counts").glob("c-v1.*")
    path.unlink()
    assert pooled_in(tmp_path, old, new) == ([], ["c: version 1 is not pooled with version 2: its counts are missing"])


def test_text_and_json_name_the_versions_and_their_contradictions(tmp_path: Path) -> None:
    old, new = version(1, 3.0), version(2, 3.0)
    save(tmp_path, old, [800, 150, 50])
    save(tmp_path, new, [150, 50, 800], flags=("busy_sender",))
    (contradictory,), _ = pooled_in(tmp_path, old, new)
    assert pooled_text(contradictory, top=2).splitlines()[:4] == [
        "c versions 1 and 2  2026-01-01 09:00 to 10:00 UTC  pooled",
        "  n 2,000 = 1,000 of version 1 (rr, epsilon 3) + 1,000 of version 2 (rr, epsilon 3)",
        "  flags: busy_sender",
        f"  {contradictory.warning}",
    ]
    assert contradictory.warning.startswith(
        "the versions contradict each other in 3 of 3 estimates: their users differ"
    )
    line = json.loads(json.dumps(pooled_json(contradictory)))
    assert (line["versions"], line["estimator"], line["n"], line["contradictory"]) == ([1, 2], "pooled", 2000, 3)
    assert sum(line["distribution"]) == pytest.approx(1)
    assert not {"version", "epsilon", "pane", "device_digest", "counts", "mechanism"} & set(line)
