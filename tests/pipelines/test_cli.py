"""The command line as users and programs meet it: what it prints, what it offers and how it stops."""

import _thread
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.pipelines.command import MANHATTAN, SPEC, TRUTH, ULDP, Run, heeding_interrupts
from uldp.pipelines.demo import run_demo
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import PaneKind
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.json_schema import spec_schema
from uldp.transforms.io.local.stream import LocalStream


def test_check_warns_of_what_a_spec_is_hardly_meant_to_say(uldp: Run, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text(
        "{collection: c, version: 1, domain: {labels: [home, work]}, sensitive: [home], tags: [{name: home}], "
        "mechanism: {name: urr, epsilon: 0.1}, window: {size: 1h, early_every: 2h}}"
    )
    code, out, err = uldp("check", path, "--users", "10")
    assert (code, err) == (0, "")
    warnings = [line for line in out.splitlines() if line.startswith("warning: ")]
    assert [line.removeprefix(f"warning: {path}: ").split()[0] for line in warnings] == [
        "window.early_every,",
        "tag",
        "the",
    ]
    assert "warning" not in uldp("check", SPEC)[1]


@pytest.mark.nightly
def test_a_rerun_in_another_process_gives_the_same_files(simulated: Path, tmp_path: Path) -> None:
    def run(hash_seed: str) -> dict[str, bytes]:
        for command, out in (("backfill", "batch"), ("stream", "live")):
            arguments = [command, "--spec", SPEC, "--from", str(simulated), "--to", str(tmp_path / out)]
            environment = os.environ | {"PYTHONHASHSEED": hash_seed}
            subprocess.run([ULDP, *arguments], check=True, capture_output=True, env=environment)
        # How often a stream fires early depends on the machine's speed; what is late or rejected does not.
        kept = (file for folder in ("batch", "live/late", "live/rejected") for file in (tmp_path / folder).rglob("*"))
        return {str(file.relative_to(tmp_path)): file.read_bytes() for file in kept if file.is_file()}

    first = run("1")
    assert len(first) > 9
    assert run("2") == first


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_stream_completes_no_window_and_begins_anew(
    stop: signal.Signals, uldp: Run, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    shutil.copytree(Path(MANHATTAN, "background"), tmp_path / "background")
    text = Path(SPEC).read_text(encoding="utf-8")
    spec.write_text(text.replace("early_every: 5s", "early_every: 1s").replace("min_reports: 100", "min_reports: 1"))
    source = tmp_path / "stream"
    assert uldp("simulate", spec, "--truth", TRUTH, "--users", "300", "--to", source, "--duration", "20m")[0] == 0
    (source / "closed").unlink()
    command = heeding_interrupts("stream", "--spec", spec, "--from", source, "--to", tmp_path / "out")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "n     300" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(stop)
        said, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err.strip() == "error: stopped; the files that were written remain; run the same command again"
    assert "1 open window is marked incomplete" in said
    (pane,) = newest(ResultsFolder(tmp_path / "out").statistics())
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.EARLY, 300, ("incomplete",))
    (source / "closed").touch()
    assert uldp("stream", "--spec", spec, "--from", source, "--to", tmp_path / "out")[0] == 0
    (pane,) = newest(ResultsFolder(tmp_path / "out").statistics())
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.ON_TIME, 300, ())


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("--json", "check", "nowhere.yaml"), 1, "nowhere.yaml: No such file or directory; check the path"),
        (("--json", "show"), 2, "Missing argument 'OUT' (see uldp show --help)"),
        (("--files-below", ".", "--json", "decode", "no hex"), 1, "'no hex': neither a file nor"),
    ],
)
def test_errors_are_one_object_for_programs(uldp: Run, arguments: tuple[str, ...], code: int, error: str) -> None:
    exit_code, out, err = uldp(*arguments)
    (line,) = err.splitlines()
    said = json.loads(line)
    assert (exit_code, out, said.keys(), said["exit_code"]) == (code, "", {"errors", "exit_code"}, code)
    assert len(said["errors"]) == 1
    assert said["errors"][0].startswith(error)


def test_an_empty_stream_is_no_report_and_no_error(uldp: Run, tmp_path: Path) -> None:
    source = tmp_path / "stream"
    LocalStream.create(source).close()
    nothing = "0 received = 0 counted + 0 duplicate + 0 late + 0 rejected\n"
    for command in ("backfill", "stream"):
        out = tmp_path / "out" / command
        code, said, err = uldp(command, "--spec", SPEC, "--from", source, "--to", out)
        assert (code, err) == (0, "")
        assert said.endswith(f"manhattan-checkins v1: 0 windows, {nothing}in all: {nothing}")
        assert uldp("show", out) == (0, f"{out}: no window has fired\n", "")
        assert uldp("show", out, "--json") == (0, "", f"{out}: no window has fired\n")
        page = tmp_path / "page.html"
        assert uldp("report", out, "--out", page, "--truth", TRUTH) == (0, f"wrote {page}\n", "")
        assert "No window has fired." in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("uldp sh", ["show"]),
        (
            "uldp show --",
            ["--json", "--top", "--collection", "--since", "--until", "--last", "--estimator", "--pooled", "--help"],
        ),
        ("uldp stream --watermark", ["--watermark-delay"]),
    ],
)
def test_a_shell_completes_commands_and_options_without_beam(words: str, offered: list[str]) -> None:
    variables = {
        "_ULDP_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "PYTHONPROFILEIMPORTTIME": "1",
    }
    done = subprocess.run([ULDP], env=os.environ | variables, capture_output=True, text=True, check=True)
    assert [line.removeprefix("plain,") for line in done.stdout.splitlines()] == offered
    assert "uldp.pipelines.cli" in done.stderr
    assert "apache_beam" not in done.stderr


@pytest.mark.parametrize(
    "command", ["check", "simulate", "backfill", "stream", "show", "report", "replay", "decode", "verify", "demo"]
)
def test_help_has_an_example(command: str, uldp: Run) -> None:
    code, out, _ = uldp(command, "--help")
    assert code == 0
    assert f"Example: uldp {command} " in " ".join(out.split())


def test_a_valid_spec_has_its_facts(uldp: Run) -> None:
    code, out, _ = uldp("check", SPEC, "--json", "--users", "5000", "--days", "2")
    found = json.loads(out)
    spec = CollectionSpec.load(SPEC)
    assert code == 0
    assert (found["spec"], found["valid"], found["users"]) == (SPEC, True, 5000)
    assert (found["collection"], found["version"]) == spec.key
    assert (found["device_digest"], found["epsilon"]) == (spec.device_digest, spec.mechanism.epsilon)
    said = uldp("check", SPEC, "--users", "5000", "--days", "2")[1]
    for line in (*found["text"], *found["exposure"]["lines"], *found["warnings"]):
        assert line in said


def test_an_invalid_spec_does_not_hide_the_others(uldp: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("collection: c\nversion: 1\nwindow: {}\n")
    code, out, err = uldp("check", bad, SPEC, tmp_path / "nowhere.yaml", "--json")
    first, second, third = map(json.loads, out.splitlines())
    assert (code, err) == (1, "error: 2 of 3 specs are invalid\n")
    assert (first["valid"], second["valid"], third["valid"]) == (False, True, False)
    assert len(first["errors"]) == 3
    assert all(error.startswith(f"{bad}: ") for error in first["errors"])


def test_the_schema_is_printed(uldp: Run) -> None:
    code, out, _ = uldp("schema")
    assert (code, json.loads(out)) == (0, spec_schema())


def demonstrate(out: Path) -> list[str]:
    said: list[str] = []
    run_demo(out, users=1000, speed=1e6, say=said.append, interrupt=_thread.interrupt_main)
    return said


@pytest.mark.parametrize("name", ["results/mine.txt", "stream/mine.txt", "mine.txt"])
def test_what_it_did_not_make_stays(name: str, tmp_path: Path) -> None:
    mine = tmp_path / "demo" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(RequestError, match="demo: holds files that uldp demo did not create; choose another --out"):
        demonstrate(tmp_path / "demo")
    assert [path for path in (tmp_path / "demo").rglob("*") if path.is_file()] == [mine]


@pytest.mark.slow
def test_what_it_made_it_makes_anew(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    for _ in range(2):
        last = demonstrate(tmp_path / "demo")[-1]
        assert last == f"report with the estimates and the truth: {tmp_path / 'demo' / 'report.html'}"
