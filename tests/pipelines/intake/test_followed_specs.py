"""uldp collect --specs: a real server whose folder of specs changes, by a clock of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import build
from tests.build import START
from tests.pipelines.command import Run
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.intake.app import Intake, application
from uldp.pipelines.intake.commits import Commits
from uldp.pipelines.intake.judging import Judge
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.jobs.spec_watch import SpecWatch
from uldp.schemas.errors import RequestError
from uldp.schemas.records import Report
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages


@dataclass
class Edge:
    """The server, the lines that it says, its seconds, and the milliseconds of its stream."""

    folder: Path
    stream: Path
    lines: list[str] = field(default_factory=list)
    now: float = 0.0
    milliseconds: int = START
    port: int = 0

    def write(self, name: str, **changes: Any) -> None:
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(build.MINIMAL | {"collection": name} | changes))

    def post(self, name: str, value: int, version: int = 1) -> int:
        self.milliseconds += 1000
        body = Report(name, version, self.milliseconds.to_bytes(16, "big"), self.milliseconds, value).encode()
        return post(self.port, body)[0]

    @contextmanager
    def serving(self) -> Iterator[None]:
        judge = Judge.following(SpecFolder(str(self.folder), None), self.lines.append, clock=lambda: self.now)
        stream = LocalStream.open(self.stream, clock=lambda: self.milliseconds / 1000)
        commits = Commits(judge, stream, 1 << 20)
        with Serving(app=application(Intake(commits, None, ()))) as server:
            self.port = server.port
            yield
        commits.close(0)


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    (tmp_path / "specs").mkdir()
    LocalStream.create(tmp_path / "posted")
    made = Edge(tmp_path / "specs", tmp_path / "posted")
    made.write("one")
    return made


WRONG = 77  # of no label


def test_a_new_collection_is_known_ten_seconds_after_its_first_report_and_no_report_before_is_lost(edge: Edge) -> None:
    with edge.serving():
        assert [edge.post("one", 3), edge.post("one", WRONG)] == [202, 422]
        edge.write("two")
        edge.now = 1.0
        assert edge.post("two", WRONG) == 202  # nobody knows yet that it is wrong: a job rejects and keeps it
        edge.now = 9.9
        assert edge.post("two", WRONG) == 202
        edge.now = SpecWatch.AT_ONCE
        assert [edge.post("two", WRONG), edge.post("two", 3)] == [422, 202]
    assert edge.lines[1].startswith(f"{edge.folder}: two.yaml: new spec of two-v1, takes reports published from 2026-")
    stream = [each for path in LocalStream.open(edge.stream).segments() for each in read_messages(path)]
    assert len(stream) == 4


@pytest.mark.parametrize("version", [1, 2])
def test_a_change_is_seen_after_a_minute(edge: Edge, version: int) -> None:
    with edge.serving():
        assert edge.post("one", 3) == 202
        edge.write("one", **({"version": 2} if version == 2 else {"retired": True}))
        edge.now = SpecWatch.EVERY - 0.1
        assert edge.post("one", WRONG if version == 2 else 3, version) == 202
        edge.now = SpecWatch.EVERY
        assert edge.post("one", WRONG if version == 2 else 3, version) == 422


@pytest.mark.parametrize(
    ("text", "why"),
    [("collection: one\nversion: 1\nwindow: {", "not YAML"), (None, "domain.size has changed"), ("", "")],
)
def test_a_bad_file_keeps_the_spec_before_it_and_is_said_once(edge: Edge, text: str | None, why: str) -> None:
    with edge.serving():
        if text is None:
            edge.write("one", domain={"size": 2})
        elif text:
            (edge.folder / "one.yaml").write_text(text)
        else:
            (edge.folder / "one.yaml").unlink()
        for edge.now in (60.0, 120.0):
            assert [edge.post("one", 3), edge.post("one", WRONG)] == [202, 422]
    told = [line for line in edge.lines if "refused" in line]
    assert len(told) == bool(why)
    assert all("one.yaml: refused, the spec before stays in force: " in line and why in line for line in told)


def test_a_folder_that_is_gone_for_a_while_changes_nothing(edge: Edge) -> None:
    with edge.serving():
        edge.folder.rename(edge.folder.with_name("away"))
        edge.now = 60.0
        assert [edge.post("one", 3), edge.post("one", WRONG)] == [202, 422]
        assert edge.lines[-1].endswith("the specs before stay in force")
        edge.folder.with_name("away").rename(edge.folder)
        edge.write("two")
        edge.now = 120.0
        assert edge.post("two", WRONG) == 422


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"holds no file that ends with \.yaml or \.yml; put specs there"):
        Judge.following(SpecFolder(str(tmp_path), None), print)


def test_the_command_follows_a_folder_or_names_specs(uldp: Run, edge: Edge) -> None:
    for options in ((), ("--specs", edge.folder, "--spec", edge.folder / "one.yaml")):
        code, _, err = uldp("collect", *options, "--to", edge.stream)
        assert (code, "by --spec FILE, which may be repeated, or by --specs DIR" in err) == (2, True)
    with Collecting(edge.folder, edge.stream) as collecting:
        edge.port = collecting.port
        assert [edge.post("one", WRONG), edge.post("two", 3)] == [422, 202]
