"""Results with two specs of one version: no name decides which one holds."""

import shutil
from pathlib import Path

import pytest

from tests import build
from uldp.pipelines.jobs.kept_specs import keep_specs, kept_specs
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.specs import KeptSpecs


def test_two_kept_specs_of_one_version_are_refused(tmp_path: Path) -> None:
    keep_specs(str(tmp_path), [build.spec()])
    assert KeptSpecs(tmp_path).keys() == kept_specs(str(tmp_path)).keys() == {("c", 1)}
    (kept,) = (tmp_path / "specs").iterdir()
    shutil.copytree(kept, copy := kept.with_name("a-copy"))
    for read in (KeptSpecs, lambda out: kept_specs(str(out)), lambda out: ResultsFolder(out).specs):
        with pytest.raises(ResultsError, match=rf"^{copy}: a job gives the folder of this spec another name; remove"):
            read(tmp_path)
    copy.rename(copy := kept.with_name("c-v2"))
    with pytest.raises(ResultsError, match=rf"^{copy}: a job gives the folder of this spec another name; remove"):
        dict(KeptSpecs(tmp_path))
