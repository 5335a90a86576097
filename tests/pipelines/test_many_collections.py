"""A stream of many collections, whose panes share files: a job that breaks off and goes on counts each report once."""

from pathlib import Path

import pytest

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.pipelines.cli import cli
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

COLLECTIONS, SEGMENTS, BREAKS_OFF = 36, 18, 10
SPECS = [
    build.spec(
        collection=f"c-{number}", domain={"size": 2}, mechanism={"name": "rr", "epsilon": 1.0}, window={"size": "1h"}
    )
    for number in range(COLLECTIONS)
]


def publish(stream: LocalStream, segment: int) -> None:
    """Append ten minutes: a report of each collection."""
    at = START + segment * 10 * MINUTE
    messages = []
    for number, spec in enumerate(SPECS):
        report = build.report(segment * COLLECTIONS + number, number % 2, at, spec.key)
        messages.append(build.message(report, at))
    stream.append(messages)


def follow(stream: LocalStream, out: Path, specs: list[CollectionSpec] = SPECS) -> None:
    options = jobs.pipeline_options([])
    jobs.follow(specs, stream.path, out, options)


def counted(out: Path) -> list[tuple[object, ...]]:
    """What the newest panes and estimates say, whatever their revision."""
    folder = ResultsFolder(out, private=out)
    panes = [
        (each.key, each.pane.kind, each.accounting, each.flags, each.cells.tolist())
        for each in newest(folder.statistics())
    ]
    estimates = [(each.key, each.pane.kind, each.flags, repr(each.tables)) for each in newest(folder.estimates())]
    return [*panes, *estimates]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> LocalStream:
    made = LocalStream.create(tmp_path_factory.mktemp("many") / "stream", simulated_clock=True)
    for segment in range(SEGMENTS):
        publish(made, segment)
    made.close()
    return made


def test_a_job_that_breaks_off_and_goes_on_has_the_panes_of_one_that_does_not(
    stream: LocalStream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    follow(stream, whole)
    expected = counted(whole)
    assert {each.window_start for each in ResultsFolder(whole).panes()} == {START + hour * HOUR for hour in range(3)}
    assert [path.name.partition(".")[0] for path in whole.glob("counts/*.avro")] == ["all"] * 3

    segment = stream.path / f"{BREAKS_OFF:012d}.avro"
    content = segment.read_bytes()
    segment.write_bytes(b"")
    with pytest.raises(Exception, match=segment.name):
        follow(stream, broken)

    segment.write_bytes(content)
    follow(stream, broken)
    assert counted(broken) == expected

    for command in (["audit", str(stream.path), str(broken)], ["prune", str(broken)]):
        cli.main(command, standalone_mode=False)
    assert counted(broken) == expected
    assert len(ResultsFolder(broken).panes()) == 3 * COLLECTIONS
    cli.main(["prune", str(whole)], standalone_mode=False)
    printed = []
    for out in (whole, broken):
        capsys.readouterr()
        cli.main(["show", str(out), "--collection", "c-7"], standalone_mode=False)
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
