"""The specs of a job that comes again: which half may change, and what is kept beside results."""

import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from pydantic import BaseModel

from tests import build
from uldp.mechanisms.kernels.designs import Design
from uldp.pipelines.jobs import outputs
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.pipelines.jobs.kept_specs import is_kept, keep_specs, kept_specs
from uldp.pipelines.jobs.outputs import claimed
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import OWN
from uldp.schemas.specs.specfile import SpecError

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
        (URR, {"mechanism": {"name": "urap", "epsilon": 1.0}}, r"another mechanism\.name;"),
        (URR, {"mechanism": {"name": "urr", "epsilon": 2.0}}, r"another mechanism\.epsilon;"),
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


LABELS = {"labels_file": "labels.csv"}
OF_ATTRIBUTE = {"sensitive": ["gym"], "tags": [{"name": "home", "background": "home.csv"}]}
SPELLED = {"longest": 8, "pieces_file": "pieces.csv", "alphabet": "a-z"}
URAP = {"name": "urap", "theta": "auto"}
PREFIXES = {"name": "prefixes", "epsilon": 1.0, "cohorts": 8, "depth": 2}
DOMAINS: dict[str, dict[str, Any]] = {
    "values": {
        "domain": LABELS,
        "sensitive": ["home"],
        "tags": [{"name": "in", "zones": "zones.csv", "zone_epsilon": 0.5}, {"name": "out", "background": "home.csv"}],
    },
    "set": {"domain": {"set": {"of": LABELS, "at_most": 2}}, "mechanism": {"name": "set-ss", "epsilon": 1.0}},
    "pairs": {
        "domain": {"pairs": {"of": LABELS, "at_most": 2, "low": 0, "high": 1}},
        "mechanism": {"name": "set-ss", "epsilon": 1.0},
    },
    "strings": {"domain": {"strings": SPELLED}, "mechanism": PREFIXES},
    "string-set": {"domain": {"set": {"of": {"strings": SPELLED}, "at_most": 2}}, "mechanism": PREFIXES},
    "record": {
        "domain": {"record": {"app": LABELS | OF_ATTRIBUTE, "new": {"size": 2}}},
        "mechanism": {"name": "sample-one", "epsilon": 1.0, "of": {"app": URAP, "new": {"name": "rr"}}},
    },
}
FILES = {
    "labels.csv": "value\nhome\nwork\ngym\n",
    "pieces.csv": "piece\nho\nme\n",
    "home.csv": "home,1\nwork,3\n",
    "zones.csv": "value,zone\ngym,south\nhome,north\nwork,south\n",
}


def test_each_kind_that_names_a_file_is_tried() -> None:
    models = {name: kind for name, kind in OWN.items() if issubclass(kind, BaseModel)}
    naming = {name for name, model in models.items() if "_file" in json.dumps(model.model_json_schema())}
    assert naming == DOMAINS.keys() - {"values", "record"}


@pytest.mark.parametrize("kind", DOMAINS)
def test_a_kept_spec_has_what_its_files_list(kind: str, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    spec = CollectionSpec.parse(build.MINIMAL | DOMAINS[kind], base=tmp_path)
    keep_specs(str(tmp_path / "out"), [spec])
    for path in tmp_path.glob("*.csv"):
        path.unlink()
    assert "theta: auto" not in (tmp_path / "out" / "specs" / "c-v1" / "spec.yaml").read_text(encoding="utf-8")
    (kept,) = kept_specs(str(tmp_path / "out")).values()
    assert kept.device_digest == spec.device_digest
    for name, variable in spec.variables.items():
        read = kept.variables[name]
        assert (read.labels, read.background.tobytes()) == (variable.labels, variable.background.tobytes())
        assert [each and each.labels for each in read.zones] == [each and each.labels for each in variable.zones]


#: YAML has a rule of its own for each: breaks of lines, words and numbers, marks, spaces at the ends, long lines.
OF_YAML = ["\x85", "\u2028", "no", "~", "1e3", "a: b", "- a", " a ", "#", "'", '"\\', "word " * 40, "é", "\U0001f600"]


def test_a_kept_spec_has_any_label_as_it_was(tmp_path: Path) -> None:
    spec = build.spec(domain={"labels": OF_YAML})
    keep_specs(str(tmp_path), [spec])
    (kept,) = kept_specs(str(tmp_path)).values()
    assert list(kept.labels) == OF_YAML
    assert kept.device_digest == spec.device_digest


def records(tmp_path: Path, **changes: object) -> list[CollectionSpec]:
    """Two specs; one has files beside it."""
    (tmp_path / "home.csv").write_text("0,1\n1,3\n", encoding="utf-8")
    tagged = build.MINIMAL | {"sensitive": [0], "tags": [{"name": "home", "background": "home.csv"}]} | changes
    return [CollectionSpec.parse(tagged, base=tmp_path), build.spec(collection="other")]


def claim(out: Path, specs: list[CollectionSpec]) -> list[str]:
    """Begin and end a job; returns the collections whose specs it has written."""
    job = JobIdentity.of("stream", "s", "", specs)
    with mock.patch.object(outputs, "keep_specs", side_effect=keep_specs) as kept, claimed(str(out), specs, job):
        pass
    (written,) = kept.call_args_list
    return [spec.collection for spec in written.args[1]]


def test_a_job_that_starts_again_writes_the_specs_that_have_changed(tmp_path: Path) -> None:
    out, specs = tmp_path / "out", records(tmp_path)
    names = [spec.collection for spec in specs]
    assert claim(out, specs) == names
    files = {path: path.stat().st_ino for path in out.glob("specs/*/*")}
    assert len(files) == 3
    assert claim(out, specs) == []
    assert {path: path.stat().st_ino for path in out.glob("specs/*/*")} == files
    later = records(tmp_path, limits={"min_reports": 7})
    assert claim(out, later) == names[:1]
    assert kept_specs(str(out))[later[0].key].limits.min_reports == 7


def test_a_kept_spec_that_somebody_has_changed_is_read_and_written_again(tmp_path: Path) -> None:
    out, specs = tmp_path / "out", records(tmp_path)
    claim(out, specs)
    (out / "late").mkdir()
    (out / "late" / "one.avro").touch()  # else nothing is lost if another job takes the directory
    folder = out / "specs" / f"{specs[0].collection}-v1"
    (folder / "home.csv").write_text("value,weight\n0,1\n", encoding="utf-8")
    assert not is_kept(specs[0], out)
    assert is_kept(specs[1], out)
    assert claim(out, specs) == [specs[0].collection]
    text = (folder / "spec.yaml").read_text(encoding="utf-8")
    (folder / "spec.yaml").write_text(text.replace("epsilon: 1.0", "epsilon: 2.0"), encoding="utf-8")
    with pytest.raises(ResultsError, match=r"holds results of .* version 1 with another mechanism\.epsilon"):
        claim(out, specs)
    (folder / "spec.yaml").write_text(text[:-4], encoding="utf-8")
    with pytest.raises(SpecError, match="its end is missing"):
        claim(out, specs)
