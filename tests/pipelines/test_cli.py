"""The command line as a user meets it: what it prints, and what it says when something is wrong."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from uldp.pipelines.cli import main
from uldp.pipelines.results.read import newest, read_counts
from uldp.schemas.records import Message, PaneKind
from uldp.transforms.io.local.stream import LocalStream

MANHATTAN = Path(__file__).parents[2] / "examples" / "manhattan"
SPEC, TRUTH = str(MANHATTAN / "spec.yaml"), str(MANHATTAN / "truth.csv")

ULDP = Path(sys.executable).with_name("uldp")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def uldp(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process; returns exit code, output and errors."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["uldp", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream of 6,000 reports of three hours, with one in ten a copy, late or damaged."""
    folder = tmp_path_factory.mktemp("simulated")
    arguments = ["--truth", TRUTH, "--users", "6000", "--to", str(folder / "stream"), "--seed", "7"]
    trouble = ["--duplicates", "0.04", "--late", "0.03", "--malformed", "0.03"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "simulate", SPEC, *arguments, *trouble])
        main()
    return folder / "stream"


def test_check_prints_the_channel_and_the_errors_to_expect(uldp: Run) -> None:
    code, out, _ = uldp("check", SPEC, "--users", "179527")
    assert code == 0
    assert "manhattan-checkins version 1" in out
    assert "epsilon 6.43775" in out
    assert (
        "limits      100 reports or more, flag above 0.1 rejected, clocks up to 10m ahead, reports up to 365d old\n"
        in out
    )
    assert "17 symbols: p 0.975039, q 0.00156006" in out  # 15 cells and 2 tags: c1, c2 of Definition 4 with v = 17


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


def test_stream_then_backfill_then_show_then_report(uldp: Run, simulated: Path, tmp_path: Path) -> None:
    live, batch = tmp_path / "live", tmp_path / "batch"

    code, streamed, err = uldp("stream", "--spec", SPEC, "--from", simulated, "--to", live, "--runner=DirectRunner")
    assert (code, err) == (0, "")
    assert streamed.startswith(f"following {simulated} into {live}: manhattan-checkins v1\n")
    assert " on time " in streamed
    assert " late " in streamed

    code, out, err = uldp("backfill", "--spec", SPEC, "--from", simulated, "--to", batch)
    assert (code, err) == (0, "")
    assert "6,240 received" not in out  # the damaged ones that name no window are not in a window's line
    assert "does not add up" not in out + streamed

    code, out, _ = uldp("show", batch, "--json")
    estimates = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    for estimate in estimates:
        assert estimate["collection"] == "manhattan-checkins"
        assert len(estimate["distribution"]) == len(estimate["stderr"]) == 625
        assert sum(estimate["distribution"]) == pytest.approx(1)
        assert set(estimate["tags"]) == {"home", "workplace"}
        a = estimate["accounting"]
        assert a["received"] == a["counted"] + a["duplicate"] + a["late"] + a["rejected"]

    code, out, _ = uldp("show", live)
    assert code == 0
    assert "± " in out

    page = tmp_path / "report.html"
    code, out, _ = uldp("report", live, "--out", page, "--truth", TRUTH, "--grid", "25x25")
    assert code == 0
    assert "<svg" in page.read_text(encoding="utf-8")


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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_stream_completes_no_window_and_begins_anew(
    stop: signal.Signals, uldp: Run, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.yaml"
    text = (
        Path(SPEC)
        .read_text(encoding="utf-8")
        .replace("background: background/", f"background: {MANHATTAN}/background/")
    )
    spec.write_text(text.replace("early_every: 5s", "early_every: 1s").replace("min_reports: 100", "min_reports: 1"))
    source = tmp_path / "stream"
    assert uldp("simulate", spec, "--truth", TRUTH, "--users", "300", "--to", source, "--duration", "20m")[0] == 0
    (source / "closed").unlink()
    command: list[str | Path] = [
        ULDP,
        "stream",
        "--spec",
        spec,
        "--from",
        source,
        "--to",
        tmp_path / "out",
    ]

    # Whoever runs the tests in the background ignores SIGINT, and so would what they start.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    ) as process:
        assert process.stdout is not None
        while "n     300" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(stop)
        said, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert err.strip() == "error: stopped; what was written stays, and the same command begins anew"
    assert "1 open window is marked incomplete" in said
    (pane,) = newest(read_counts(tmp_path / "out"))
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.EARLY, 300, ("incomplete",))
    (source / "closed").touch()
    assert uldp("stream", "--spec", spec, "--from", source, "--to", tmp_path / "out")[0] == 0
    (pane,) = newest(read_counts(tmp_path / "out"))
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.ON_TIME, 300, ())


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
        assert uldp("report", out, "--out", page, "--grid", "25x25", "--truth", TRUTH) == (0, f"wrote {page}\n", "")
        assert "No window has fired." in page.read_text(encoding="utf-8")


def test_simulate_says_nothing_but_what_it_sent(uldp: Run, tmp_path: Path) -> None:
    code, out, err = uldp("simulate", SPEC, "--truth", TRUTH, "--users", "5", "--to", tmp_path / "stream")
    assert (code, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'stream'}: 5 reports, ")


@pytest.fixture(scope="module")
def results(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a backfill makes of the simulated stream."""
    out = tmp_path_factory.mktemp("backfilled") / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["uldp", "backfill", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
        main()
    return out


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ((), ["09", "10", "11"]),
        (("--last", "2"), ["10", "11"]),
        (("--since", "2026-01-05T10:30"), ["10", "11"]),
        (("--since", "2026-01-05T10:30", "--last", "1", "--collection", "manhattan-checkins"), ["11"]),
        (("--estimator", "mle", "--last", "1"), ["11"]),
        (("--since", "2026-01-05T12:00"), []),
    ],
)
def test_show_chooses(options: tuple[str, ...], starts: list[str], uldp: Run, results: Path) -> None:
    code, out, err = uldp("show", results, "--json", *options)
    shown = [json.loads(line)["window_start"] for line in out.splitlines()]
    assert (code, shown) == (0, [f"2026-01-05T{hour}:00:00Z" for hour in starts])
    assert err == ("" if starts else f"{results}: no window of these has fired\n")


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--collection", "manhattan", "no collection 'manhattan' is there; did you mean 'manhattan-checkins'?"),
        ("--estimator", "mlee", "no estimator 'mlee' is there; did you mean 'mle'? choose one of: mle"),
    ],
)
def test_show_names_what_there_is(option: str, name: str, message: str, uldp: Run, results: Path) -> None:
    code, out, err = uldp("show", results, option, name)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")


@pytest.mark.parametrize("kind", ["estimates", "counts"])
def test_a_damaged_file_hides_its_window_and_is_named(kind: str, uldp: Run, results: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    shutil.copytree(results, out)
    path = sorted((out / kind).rglob("*.avro"))[1]
    path.write_bytes(path.read_bytes()[:-9])
    error = f"error: {path}: not a whole Avro file of schema "

    code, shown, err = uldp("show", out, "--json")
    assert [json.loads(line)["window_start"][11:13] for line in shown.splitlines()] == ["09", "11"]
    assert (code, err.startswith(error), len(err.splitlines())) == (1, True, 1)

    code, said, err = uldp("report", out, "--out", tmp_path / "page.html")
    assert (code, said, err.startswith(error)) == (1, f"wrote {tmp_path / 'page.html'}\n", True)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "1 file of these results cannot be read." in page
    assert "2026-01-05 09:00 to 10:00" in page
    assert "2026-01-05 10:00 to 11:00" not in page


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("uldp sh", ["show"]),
        ("uldp show --", ["--json", "--top", "--collection", "--since", "--last", "--estimator", "--help"]),
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


BAD_INPUT = [
    ((), 2, "Usage"),
    (("check",), 2, "Missing argument 'SPEC...'"),
    (("check", "no-such.yaml"), 1, "no-such.yaml: No such file or directory; check the path"),
    (("check", "wrong.yaml"), 1, "wrong.yaml: version: missing; add it"),
    (("check", "empty"), 2, "File 'empty' is a directory."),
    (("check", "twice.yaml"), 1, "error: twice.yaml: line 2: key 'version' stands twice; remove one"),
    (("check", "junk/junk.avro"), 1, "error: junk/junk.avro: not a text file; is this the right file?"),
    (("check", SPEC, "--userz", "5"), 2, "No such option"),
    (("frobnicate",), 2, "No such command 'frobnicate'"),
    (("simulate", SPEC, "--truth", "no.csv", "--users", "5", "--to", "s"), 1, "no.csv: No such file or directory"),
    (("simulate", SPEC, "--truth", TRUTH, "--users", "0", "--to", "s"), 2, "0 is not in the range"),
    (("simulate", SPEC, "--truth", TRUTH, "--users", "5", "--to", "full"), 1, "full: holds something already"),
    (
        ("simulate", SPEC, "--truth", TRUTH, "--users", "5", "--to", "s", "--duration", "3x"),
        2,
        "'3x': write a duration",
    ),
    (("simulate", SPEC, "--truth", TRUTH, "--users", "5", "--to", "s", "--start", "noon"), 2, "no ISO 8601 time"),
    (("backfill", "--spec", SPEC, "--from", "nowhere", "--to", "out"), 1, "nowhere: no such file or directory"),
    (("backfill", "--spec", SPEC, "--from", "empty", "--to", "out"), 1, "empty: holds no .avro file of messages"),
    (("backfill", "--spec", SPEC, "--from", "full", "--to", "out", "--frob=1"), 1, "unknown option --frob"),
    (("backfill", "--spec", SPEC, "--from", "full", "--to", "out", "stray"), 1, "unexpected argument 'stray'"),
    (("backfill", "--spec", SPEC, "--spec", SPEC, "--from", "full", "--to", "out"), 1, "two specs for manhattan"),
    (("backfill", "--spec", SPEC, "--from", "junk", "--to", "out"), 1, "junk.avro: not an Avro file of messages"),
    (
        ("stream", "--spec", SPEC, "--from", "empty", "--to", "out"),
        1,
        "empty: holds nothing; give a directory",
    ),
    (("stream", "--spec", SPEC, "--from", "kafka:broker:9092/t", "--to", "out"), 1, "add --runner=PortableRunner"),
    (("stream", "--spec", SPEC, "--from", "kafka:broker/t", "--to", "out"), 1, "write kafka:HOST:PORT/TOPIC"),
    (("stream", "--spec", SPEC, "--from", "full", "--to", "out", "--runner=FlinkRunner"), 1, "--runner=FlinkRunner"),
    (("show", "nowhere"), 1, "nowhere: "),
    (("show", "empty"), 1, "empty: "),
    (("report", "empty", "--out", "r.html"), 1, "empty: "),
    (("replay", "empty", "--to", "again"), 1, "empty: holds nothing; give a directory that holds rejected reports"),
    (
        ("replay", "full", "--to", "again"),
        1,
        "full: holds a local stream; give a directory that holds rejected reports",
    ),
    (("show", "full"), 1, "full: holds a local stream; give a directory that holds results"),
    (("report", "full", "--out", "r.html"), 1, "full: holds a local stream; give a directory that holds results"),
    (
        ("simulate", SPEC, "--truth", TRUTH, "--users", "5", "--to", "gs://b/s"),
        2,
        "gs://b/s: gs: is not of this machine",
    ),
    (("stream", "--spec", SPEC, "--from", "full", "--to", "gs://b/out"), 2, "gs://b/out: gs: is not of this machine"),
    (("stream", "--spec", SPEC, "--from", "full", "--to", "bogus://b"), 2, "bogus://b: bogus: is not of this machine"),
    (
        ("stream", "--spec", SPEC, "--from", "full", "--to", "kafka:b:9092/t"),
        2,
        "results go to a directory, or to a URL",
    ),
    (("backfill", "--spec", SPEC, "--from", "full", "--to", "pubsub:t"), 2, "results go to a directory, or "),
    (("backfill", "--spec", SPEC, "--from", "full", "--to", "bogus://b"), 1, "no file system for bogus:// here"),
    (("replay", "full", "--to", "s3://b/again"), 2, "s3://b/again: s3: is not of this machine"),
    (("show", "gs://b/results"), 2, "gs://b/results: gs: is not of this machine"),
    (("demo", "--out", "gs://b/demo"), 2, "gs://b/demo: gs: is not of this machine"),
    (("demo", "--out", "full"), 1, "full: holds what uldp demo did not make"),
    (("backfill", "--spec", SPEC, "--from", "full", "--to", "full"), 1, "--from full and --to full overlap"),
    (("stream", "--spec", SPEC, "--from", "full", "--to", "full/out"), 1, "--from full and --to full/out"),
    (
        ("stream", "--spec", SPEC, "--from", "archive", "--to", "out"),
        1,
        "archive: holds messages; give a directory that ",
    ),
    (("replay", "nowhere", "--to", "again"), 1, "nowhere: "),
    (("report", "empty", "--out", "r.html", "--grid", "25"), 2, "write rows and columns like 25x25"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), BAD_INPUT)
def test_bad_input_is_one_clear_line(
    arguments: tuple[str, ...], code: int, message: str, uldp: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    LocalStream.create(tmp_path / "full").append([Message(b"no report", 0)])
    LocalStream.create(tmp_path / "archive").append([Message(b"no report", 0)])
    (tmp_path / "archive" / "stream.json").unlink()
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "junk.avro").write_bytes(b"no Avro\0")
    (tmp_path / "twice.yaml").write_text("version: 1\nversion: 2\n")
    (tmp_path / "wrong.yaml").write_text(Path(SPEC).read_text(encoding="utf-8").replace("version: 1", ""))
    before = sorted(tmp_path.rglob("*"))
    found, out, err = uldp(*arguments)
    assert found == code
    if "junk" not in arguments:  # which is not known before it is read
        assert sorted(tmp_path.rglob("*")) == before
    assert message in out + err
    assert "Traceback" not in err
    if arguments:
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["check", "simulate", "backfill", "stream", "show", "report", "replay", "demo"])
def test_help_has_an_example(command: str, uldp: Run) -> None:
    code, out, _ = uldp(command, "--help")
    assert code == 0
    assert f"Example: uldp {command} " in " ".join(out.split())


@pytest.mark.parametrize(
    ("command", "sources"),
    [
        ("backfill", {"a file, a directory", "a URL", "kafka:HOST:PORT/TOPIC"}),
        ("stream", {"A local stream's directory", "kafka:HOST:PORT/TOPIC", "pubsub:projects/P/subscriptions/S"}),
    ],
)
def test_help_of_a_job_offers_the_sources_that_it_reads_and_no_others(
    command: str, sources: set[str], uldp: Run
) -> None:
    _, out, _ = uldp(command, "--help")
    (offered,) = re.findall(r" --from TEXT (.*?) --to ", " ".join(out.split()))
    assert all(source in offered for source in sources)
    assert ("pubsub:" in offered) == (command == "stream")
