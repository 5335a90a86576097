"""A job that comes again with a changed spec: which half of the spec may change, and how a refusal names the key."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.kernels.designs import Design
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.specs.collection import CollectionSpec

URR: dict[str, Any] = {"sensitive": [0], "tags": [{"name": "home"}]}
RECORD: dict[str, Any] = {
    "domain": {"record": {"app": {"labels": ["mail", "maps"]}, "hours": {"number": {"low": 0, "high": 24}}}},
    "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": {"name": "urr"}, "hours": {"name": "duchi"}}},
}


def begin(out: Path, spec: CollectionSpec, *, resumes: bool) -> None:
    job = JobIdentity.of("stream", "kafka:broker:9092/reports", "topic", [spec], resumes=resumes)
    with claimed(str(out), [spec], job):
        pass


@pytest.mark.parametrize(
    "changed",
    [
        {"estimator": ["empirical", "mle"]},
        {"limits": {"min_reports": 100, "max_rejected_ratio": 0.1, "when_exceeded": "stop"}},
        {"limits": {"max_duplicate_ratio": 0.5, "max_reports_per_sender": 5}},
        {"intervals": "simultaneous"},
        {"tags": [{"name": "home", "background": "home.csv"}]},
        {"tags": [{"name": "home", "background": "home.csv", "strength": 30.0}]},
        {"tags": [{"name": "home", "background": "half.csv"}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("resumes", [True, False])
def test_the_reading_half_may_change(resumes: bool, changed: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "home.csv").write_text("1,1\n")
    (tmp_path / "half.csv").write_text("1,0.5\n")
    begin(tmp_path / "out", build.spec(**URR), resumes=resumes)
    now = CollectionSpec.parse(build.MINIMAL | URR | changed, base=tmp_path)
    begin(tmp_path / "out", now, resumes=resumes)
    kept = CollectionSpec.load(tmp_path / "out" / "specs" / "c-v1" / "spec.yaml")
    assert (kept.estimators, kept.limits, kept.intervals) == (now.estimators, now.limits, now.intervals)
    assert kept.background.tobytes() == now.background.tobytes()
    np.testing.assert_array_equal(kept.variables[""].strength, now.variables[""].strength)


@pytest.mark.parametrize(
    "changed", [{"retired": True}, {"limits": {"max_age": "2h"}}, {"limits": {"max_clock_skew": "1h"}}]
)
def test_a_job_that_resumes_may_reject_other_reports(changed: dict[str, Any], tmp_path: Path) -> None:
    begin(tmp_path, build.spec(), resumes=True)
    begin(tmp_path, build.spec(**changed), resumes=True)


@pytest.mark.parametrize("resumes", [True, False])
@pytest.mark.parametrize(
    ("given", "changed", "key"),
    [
        (URR, {"domain": {"size": 6}}, r"another domain\.size;"),
        (URR, {"sensitive": [1]}, r"another sensitive;"),
        (URR, {"tags": [{"name": "work"}]}, r"another tags;"),
        (URR, {"mechanism": {"name": "urap", "epsilon": 1.0}}, r"another mechanism\.name;"),
        (URR, {"mechanism": {"name": "urr", "epsilon": 2.0}}, r"another mechanism\.epsilon;"),
        (RECORD, {"mechanism": {**RECORD["mechanism"], "epsilon": 2.0}}, r"another mechanism\.epsilon;"),
        (
            RECORD,
            {"domain": {"record": {**RECORD["domain"]["record"], "hours": {"number": {"low": 0, "high": 12}}}}},
            r"another domain\.record\.hours\.number\.high;",
        ),
        (URR, {"window": {"size": "2h"}}, r"window\.size of c-v1 was 1h and is 2h"),
        (
            URR | {"window": {"size": "1h", "period": "30m"}},
            {"window": {"size": "1h"}},
            r"window\.period of c-v1 was 30m",
        ),
        (URR, {"window": {"size": "10m"}}, r"window\.size, 10m, cuts apart slices of 1h, .* a new version;"),
        (URR, {"window": {"size": "90m"}}, r"window\.size, 90m, cuts apart slices of 1h, .* a new version;"),
        (URR, {"window": {"size": "1h", "period": "30m"}}, r"window\.period, 30m, cuts apart slices of 1h, "),
        (URR, {"window": {"size": "2h", "offset": "30m"}}, r"window\.offset, 30m, cuts apart slices of 1h, "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_change_of_the_device_half_or_of_windows_is_refused_by_its_key(
    given: dict[str, Any], changed: dict[str, Any], key: str, resumes: bool, tmp_path: Path
) -> None:
    begin(tmp_path, build.spec(**given), resumes=resumes)
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / "one.avro").touch()  # else nothing is lost if another job takes the directory
    before = (tmp_path / "job.json").read_bytes()
    with pytest.raises(ResultsError, match=key):
        begin(tmp_path, build.spec(**given | changed), resumes=resumes)
    assert (tmp_path / "job.json").read_bytes() == before


@pytest.mark.parametrize(("name", "key"), [("ubd", "w"), ("uss", "w"), ("urap", "theta")])
def test_a_kept_spec_has_numbers_so_that_a_release_that_chooses_others_is_refused(
    name: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = {"name": name, key: "auto", "epsilon": 1.0}
    keys: dict[str, Any] = {"domain": {"size": 40}, "sensitive": [*range(10)], "mechanism": mechanism}
    begin(tmp_path, build.spec(**keys), resumes=True)
    begin(tmp_path, build.spec(**keys), resumes=True)
    monkeypatch.setattr("uldp.mechanisms.families.subset_selection.spec.best_design", lambda *_: Design(10, 1, 0))
    monkeypatch.setattr("uldp.mechanisms.families.subset_selection.spec.best_subset", lambda *_: 9)
    monkeypatch.setattr("uldp.mechanisms.families.unary_encoding.spec.best_theta", lambda *_: 0.25)
    with pytest.raises(ResultsError, match=rf"another mechanism\.{key};"):
        begin(tmp_path, build.spec(**keys), resumes=True)
