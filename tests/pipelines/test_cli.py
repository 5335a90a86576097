"""The command line as a user meets it: what it prints, and what it says when something is wrong."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pipelines.cli import main
from pipelines.results import newest, read_counts
from schemas.records import Message, PaneKind
from transforms.localstream import LocalStream

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
    assert "limits      100 reports or more, flag above 0.1 rejected, clocks up to 10m ahead\n" in out
    assert "17 symbols: p 0.975039, q 0.00156006" in out  # 15 cells and 2 tags: c1, c2 of Definition 4 with v = 17


def test_stream_then_backfill_then_show_then_report(uldp: Run, simulated: Path, tmp_path: Path) -> None:
    live, batch = tmp_path / "live", tmp_path / "batch"

    code, streamed, err = uldp("stream", "--spec", SPEC, "--from", simulated, "--to", live, "--runner=DirectRunner")
    assert (code, err) == (0, "")
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
    assert "1 open windows are marked incomplete" in said
    (pane,) = newest(read_counts(tmp_path / "out"))
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.EARLY, 300, ("incomplete",))
    (source / "closed").touch()
    assert uldp("stream", "--spec", spec, "--from", source, "--to", tmp_path / "out")[0] == 0
    (pane,) = newest(read_counts(tmp_path / "out"))
    assert (pane.pane.kind, pane.n, pane.flags) == (PaneKind.ON_TIME, 300, ())


BAD_INPUT = [
    ((), 2, "Usage"),
    (("check",), 2, "Missing argument 'SPEC...'"),
    (("check", "no-such.yaml"), 1, "no-such.yaml: No such file or directory; check the path"),
    (("check", "wrong.yaml"), 1, "wrong.yaml: version: missing; add it"),
    (("check", SPEC, "--userz", "5"), 2, "No such option '--userz'"),
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
    (("stream", "--spec", SPEC, "--from", "empty", "--to", "out"), 1, "empty: no local stream; make one with"),
    (("stream", "--spec", SPEC, "--from", "kafka:broker:9092/t", "--to", "out"), 1, "add --runner=FlinkRunner"),
    (("stream", "--spec", SPEC, "--from", "kafka:broker/t", "--to", "out"), 1, "write kafka:HOST:PORT/TOPIC"),
    (("stream", "--spec", SPEC, "--from", "full", "--to", "out", "--runner=FlinkRunner"), 1, "--runner=FlinkRunner"),
    (("show", "nowhere"), 1, "nowhere: "),
    (("show", "empty"), 1, "empty: "),
    (("report", "empty", "--out", "r.html"), 1, "empty: "),
    (("replay", "empty", "--to", "again"), 1, "empty: no rejected reports"),
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
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "junk.avro").write_bytes(b"no Avro")
    (tmp_path / "wrong.yaml").write_text(Path(SPEC).read_text(encoding="utf-8").replace("version: 1", ""))
    found, out, err = uldp(*arguments)
    assert found == code
    assert message in out + err
    assert "Traceback" not in err
    if arguments:
        assert len(err.splitlines()) == 1


@pytest.mark.parametrize("command", ["check", "simulate", "backfill", "stream", "show", "report", "replay", "demo"])
def test_help_has_an_example(command: str, uldp: Run) -> None:
    code, out, _ = uldp(command, "--help")
    assert code == 0
    assert f"Example: uldp {command} " in " ".join(out.split())
