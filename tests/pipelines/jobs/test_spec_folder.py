"""A folder of specs: what is new, changed, bad or gone in it, and what a job that starts again finds."""

import os
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from tests.build import HOUR, START
from uldp.collector.admission import Admission
from uldp.pipelines.jobs import spec_folder
from uldp.pipelines.jobs.spec_folder import Looked, SpecFolder
from uldp.schemas.errors import EndpointError, RequestError
from uldp.schemas.specs.durations import moment_at

NO_SPEC = "no spec by its name, which ends in neither .yaml nor .yml"
ADMISSION = Admission(sender_key=False, caps_senders=False)
SPEC = """
collection: {}
version: 1
domain: {{labels_file: labels.csv}}
mechanism: {{name: urap, epsilon: 1.0}}
sensitive: [a]
tags: [{{name: home, background: home.csv}}]
window: {{size: 1h}}
"""


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "labels.csv").write_text("value\na\nb\nc\n")
    (folder / "home.csv").write_text("a,1\nb,3\n")
    write(folder, "one")
    return folder


def write(folder: Path, name: str, more: str = "") -> None:
    (folder / f"{name}.yaml").write_text(SPEC.format(name) + more)


def begun(specs: Path) -> SpecFolder:
    folder = SpecFolder(str(specs), str(specs.parent / "out"))
    folder.begin(ADMISSION, anew=True)
    return folder


def again(specs: Path) -> SpecFolder:
    """The folder of a job that has started again."""
    folder = SpecFolder(str(specs), str(specs.parent / "out"))
    assert folder.begin(ADMISSION, anew=False) == Looked()
    return folder


def named(looked: Looked) -> Sequence[str]:
    return [spec.collection for spec in looked.taken]


def test_a_job_begins_with_all_specs_and_later_ones_open_behind_what_it_has_read(specs: Path) -> None:
    folder = begun(specs)
    write(specs, "two")
    looked = folder.look(ADMISSION, START)
    assert named(looked) == ["two"]
    assert looked.lines == [
        f"{specs}: two.yaml: new spec of two-v1, takes reports published from 2026-01-01T09:00:00.001Z on"
    ]
    assert folder.specs["one", 1].opens is None
    assert folder.specs["two", 1].opens == moment_at(START + 1)
    assert folder.look(ADMISSION, START + HOUR) == Looked()


def test_specs_that_cannot_be_kept_are_new_at_the_next_look(specs: Path) -> None:
    folder = begun(specs)
    write(specs, "two")
    write(specs, "three")
    with mock.patch.object(spec_folder, "keep_specs", side_effect=EndpointError("away")), pytest.raises(EndpointError):
        folder.look(ADMISSION, START)
    assert [*folder.specs] == [("one", 1)]
    assert named(folder.look(ADMISSION, START)) == ["three", "two"]
    assert again(specs).specs.keys() == {("one", 1), ("two", 1), ("three", 1)}


def test_a_changed_file_that_a_spec_names_changes_the_spec(specs: Path) -> None:
    folder = begun(specs)
    (specs / "home.csv").write_text("a,1\nb,1\n")
    (changed,) = folder.look(ADMISSION, START).taken
    assert changed.background.tolist() == [[0.5, 0.5, 0]]
    assert again(specs).specs["one", 1].background.tolist() == [[0.5, 0.5, 0]]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_bad_file_keeps_the_spec_before_it_until_it_is_mended(specs: Path, restarted: bool) -> None:
    folder = begun(specs)
    write(specs, "one", "estimators: mle\n")
    if restarted:
        folder = again(specs)
    looked = folder.look(ADMISSION, START)
    (line,) = looked.lines
    assert line.startswith(f"{specs}: one.yaml: refused, the spec before stays in force: estimators:")
    assert (looked.taken, folder.refused) == ([], frozenset({("one", 1)}))
    assert folder.refused_files == 1
    os.utime(specs / "one.yaml", (1, 1))
    assert folder.look(ADMISSION, START) == Looked()  # it is refused still, and was said
    write(specs, "one", "estimator: wls\n")
    mended = folder.look(ADMISSION, START)
    assert mended.lines == [f"{specs}: one.yaml: changed spec of one-v1"]
    assert (folder.refused, folder.refused_files) == (frozenset(), 0)


def test_a_file_that_is_gone_changes_nothing(specs: Path) -> None:
    folder = begun(specs)
    (specs / "one.yaml").unlink()
    assert folder.look(ADMISSION, START) == Looked()
    assert again(specs).specs.keys() == {("one", 1)}


def test_a_change_that_decides_what_counts_is_refused(specs: Path) -> None:
    folder = begun(specs)
    (specs / "one.yaml").write_text(SPEC.format("one").replace("1h", "2h"))
    (line,) = folder.look(ADMISSION, START).lines
    assert line.endswith("in force: window.size has changed, and the job has counted by it; raise the version")


@pytest.mark.parametrize("other", ["one-old.yaml", "zweite.yaml", "ONE.YML"])
@pytest.mark.parametrize("more", ["limits: {min_reports: 10}\n", "estimators: mle\n"])
def test_two_files_of_one_version_are_both_refused_whatever_they_are_called_and_hold(
    other: str, more: str, specs: Path
) -> None:
    write(specs, "one", "limits: {min_reports: 100}\n")
    folder = begun(specs)
    (specs / other).write_text(SPEC.format("one") + more)
    looked = folder.look(ADMISSION, START)
    assert (looked.taken, len(looked.lines)) == ([], 2)
    assert f"{specs}: one.yaml: refused, the spec before stays in force: is of one-v1, as {other}; " in "\n".join(
        looked.lines
    )
    assert folder.specs["one", 1].limits.min_reports == 100
    assert folder.refused == frozenset({("one", 1)})
    (specs / other).unlink()
    assert folder.look(ADMISSION, START) == Looked()
    assert folder.refused == frozenset()


def test_every_other_entry_is_named_once_with_its_reason(specs: Path) -> None:
    os.mkfifo(specs / "pipe.yaml")
    (specs / "gone.yml").symlink_to("nowhere")
    (specs / "team").mkdir()
    for name in (".one.yaml", "three.yaml.bak", *(f"{number}.txt" for number in range(9))):
        (specs / name).touch()
    folder = SpecFolder(str(specs), None)
    assert folder.begin(ADMISSION, anew=True).lines == [
        f"{specs}: gone.yml: refused, and left out: No such file or directory; check the path",
        f"{specs}: one.yaml: new spec of one-v1",
        f"{specs}: pipe.yaml: refused, and left out: is a pipe, a socket or a device; write the spec into a file",
        f"{specs}: left out .one.yaml: hidden by a name that begins with .",
        f"{specs}: left out 0.txt, 1.txt, 2.txt, 3.txt, 4.txt and 6 more: {NO_SPEC}",
    ]
    write(specs, "two")
    assert folder.look(ADMISSION, START).lines == [
        f"{specs}: two.yaml: new spec of two-v1, takes reports published from 2026-01-01T09:00:00.001Z on"
    ]


def test_what_is_no_folder_of_specs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="no such directory; check the path"):
        SpecFolder(str(tmp_path / "specs"), str(tmp_path / "out")).found()
    with pytest.raises(RequestError, match=r"holds no file that ends with \.yaml or \.yml; put specs there"):
        SpecFolder(str(tmp_path), str(tmp_path / "out")).found()
