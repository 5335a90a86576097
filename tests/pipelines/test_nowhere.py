"""A path that leads nowhere or elsewhere: each command names it and the remedy in one line, whatever it is for."""

import os
from pathlib import Path

import click
import pytest

from tests.pipelines.command import SPEC, TRUTH, Run
from tests.pipelines.results import samples
from uldp.pipelines import cli
from uldp.pipelines.jobs.identity import JobIdentity
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

KAFKA = "kafka:127.0.0.1:9/topic"
STREAM = ("stream", "--spec", SPEC, "--to", "new")
BACKFILL = ("backfill", "--spec", SPEC, "--to", "new")
SIMULATE = ("simulate", SPEC, "--truth", TRUTH, "--users", "5")
VERIFY = ("verify", "--spec", SPEC, "--value", "1")
READ = {
    "advise spec": ("advise", "nowhere"),
    "advise truth": ("advise", SPEC, "--epsilon", "1", "--users", "500", "--truth", "nowhere"),
    "audit source": ("audit", "nowhere", "results"),
    "audit out": ("audit", "full", "nowhere"),
    "audit kafka_config": ("audit", KAFKA, "results", "--kafka-config", "nowhere"),
    "backfill specs": ("backfill", "--spec", "nowhere", "--from", "full", "--to", "new"),
    "backfill source": (*BACKFILL, "--from", "nowhere"),
    "backfill sender_key": (*BACKFILL, "--from", "full", "--sender-key", "nowhere"),
    "backfill registry_ids": (*BACKFILL, "--from", "full", "--registry-ids", "nowhere"),
    "backfill kafka_config": (*BACKFILL, "--from", KAFKA, "--kafka-config", "nowhere"),
    "ask groups": ("ask", "results", "--groups", "nowhere"),
    "ask private": ("ask", "results", "--private", "nowhere"),
    "background out": ("background", "nowhere", "--to", "new"),
    "collect specs": ("collect", "--spec", "nowhere", "--to", "full"),
    "collect tokens": ("collect", "--spec", SPEC, "--to", "full", "--tokens", "nowhere"),
    "collect registry_ids": ("collect", "--spec", SPEC, "--to", "full", "--registry-ids", "nowhere"),
    "collect kafka_config": ("collect", "--spec", SPEC, "--to", KAFKA, "--kafka-config", "nowhere"),
    "check specs": ("check", "nowhere"),
    "compact out": ("compact", "nowhere"),
    "decode source": ("decode", "nowhere"),
    "decode specs": ("decode", "full", "--spec", "nowhere"),
    "decode registry_ids": ("decode", "full", "--registry-ids", "nowhere"),
    "device-table spec": ("device-table", "nowhere"),
    "vectors spec": ("vectors", "nowhere"),
    "give-up stream": ("give-up", "nowhere"),
    "export out": ("export", "nowhere", "--to", "new.csv"),
    "late out": ("late", "nowhere"),
    "late private": ("late", "results", "--private", "nowhere"),
    "late specs": ("late", "results", "--spec", "nowhere"),
    "prune out": ("prune", "nowhere"),
    "prune stream": ("prune", "results", "--stream", "nowhere"),
    "rejected out": ("rejected", "nowhere"),
    "rejected private": ("rejected", "results", "--private", "nowhere"),
    "rejected specs": ("rejected", "results", "--spec", "nowhere"),
    "replay rejected": ("replay", "nowhere", "--to", "full"),
    "report results": ("report", "nowhere", "--out", "new.html"),
    "report truth": ("report", "results", "--out", "new.html", "--truth", "nowhere"),
    "serve out": ("serve", "nowhere"),
    "serve token_file": ("serve", "results", "--token-file", "nowhere"),
    "show out": ("show", "nowhere"),
    "simulate spec": ("simulate", "nowhere", "--truth", TRUTH, "--users", "5", "--to", "new"),
    "simulate truth": ("simulate", SPEC, "--truth", "nowhere", "--users", "5", "--to", "new"),
    "simulate kafka_config": (*SIMULATE, "--to", KAFKA, "--kafka-config", "nowhere"),
    "status out": ("status", "nowhere"),
    "status private": ("status", "results", "--private", "nowhere"),
    "stream specs": ("stream", "--spec", "nowhere", "--from", "full", "--to", "new"),
    "stream source": (*STREAM, "--from", "nowhere"),
    "stream sender_key": (*STREAM, "--from", "full", "--sender-key", "nowhere"),
    "stream registry_ids": (*STREAM, "--from", "full", "--registry-ids", "nowhere"),
    "stream kafka_config": (*STREAM, "--from", KAFKA, "--kafka-config", "nowhere", "--runner=DataflowRunner"),
    "verify archive": (*VERIFY, "nowhere"),
    "verify against": (*VERIFY, "full", "--against", "nowhere", "--against-value", "2"),
    "verify spec": ("verify", "--spec", "nowhere", "--value", "1", "full"),
    "verify registry_ids": (*VERIFY, "full", "--registry-ids", "nowhere"),
    "zones spec": ("zones", "nowhere", "--tag", "home", "--to", "new.csv"),
}
WRITTEN = {
    "ask target": ("ask", "results", "--to", "nowhere/new.parquet"),
    "init file": ("init", "nowhere/new.yaml"),
    "export target": ("export", "results", "--to", "nowhere/new.csv"),
    "report out": ("report", "results", "--out", "nowhere/new.html"),
    "zones to": ("zones", SPEC, "--tag", "home", "--to", "nowhere/new.csv"),
}
#: Folders that a command creates with those above them, and what a job has made before it is asked for.
CREATED = {"background to", "collect refused", "demo out", "audit private", "replay kafka_config"}
#: Only read where strings are counted: tests/pipelines/questions tries it.
ELSEWHERE = {"ask candidates"}
REMEDIES = ("check the path", "; give a directory that holds ", "; create it")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    LocalStream.create(tmp_path / "full").append([Message(b"no report", 0)])
    samples.save(tmp_path / "results", samples.at(0))
    job = JobIdentity.of("stream", "full", "content", [CollectionSpec.load(SPEC)])
    (tmp_path / "results" / "job.json").write_bytes(job.encode())
    (spec := tmp_path / "results/specs/c-v1/spec.yaml").parent.mkdir(parents=True)
    spec.write_text(samples.SPEC, encoding="utf-8")


@pytest.mark.parametrize("name", [*READ, *WRITTEN])
def test_a_path_that_leads_nowhere_is_named_with_the_remedy(name: str, uldp: Run, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, out, err = uldp(*(READ | WRITTEN)[name])
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert "nowhere" in line
    assert any(remedy in line for remedy in REMEDIES)
    assert sorted(tmp_path.rglob("*")) == before


def test_each_path_of_each_command_is_tried() -> None:
    commands = next(value for value in vars(cli).values() if isinstance(value, click.Group)).commands
    paths = {
        f"{name} {parameter.name}"
        for name, command in commands.items()
        for parameter in command.params
        if isinstance(parameter.type, click.Path) or parameter.name == "source"
    }
    untried = sorted(paths - {*READ, *WRITTEN, *CREATED, *ELSEWHERE})
    assert not untried, f"add runs of {untried}, whose path leads nowhere, to READ, WRITTEN or CREATED of this test"
    assert paths == {*READ, *WRITTEN, *CREATED, *ELSEWHERE}


WHERE = """\
collection: where
version: 1
domain: {{labels_file: {name}}}
mechanism: {{name: rr, epsilon: 2.0}}
window: {{size: 1h}}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "labels.csv").write_text("value\nhome\nwork\n", encoding="utf-8")
    path = tmp_path / "own" / "spec.yaml"
    path.write_text(WHERE.format(name="../labels.csv"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["check"],
        ["simulate", "--truth", "no.csv", "--users", "1", "--to", "stream"],
        ["backfill", "--from", "stream", "--to", "results", "--spec"],
        ["stream", "--from", "stream", "--to", "results", "--spec"],
        ["zones", "--tag", "home", "--to", "home.csv"],
    ],
    ids=lambda command: command[0],
)
def test_a_file_elsewhere_is_refused_until_its_folder_is_allowed(uldp: Run, spec: Path, command: list[str]) -> None:
    name, *rest = command
    arguments = [name, *rest, str(spec)]
    code, _, err = uldp(*arguments)
    assert code == 1
    assert err == (
        f"error: {spec}: domain.labels_file: {spec.parent}/../labels.csv: the file is not below {spec.parent}; move it"
        " there, or allow another folder with uldp --files-below FOLDER\n"
    )
    _, _, err = uldp("--files-below", str(spec.parents[1]), *arguments)
    assert "labels_file" not in err


def test_a_pipe_is_refused_and_not_waited_for(uldp: Run, spec: Path) -> None:
    os.mkfifo(spec.parent / "pipe.csv")
    spec.write_text(WHERE.format(name="pipe.csv"), encoding="utf-8")
    code, _, err = uldp("check", str(spec))
    assert (code, err.count("\n")) == (1, 1)
    assert "pipe.csv: a pipe, a socket or a device is no regular file; copy what it holds to a file" in err
