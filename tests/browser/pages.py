"""Pages as users see them, each made by the commands or from counts."""

from pathlib import Path

from tests.pipelines.command import MANHATTAN
from tests.pipelines.report.test_long_history import save
from tests.pipelines.report.test_page import page
from tests.pipelines.test_every_mechanism import CASES, write_spec
from uldp.pipelines.cli import cli

_KINDS = ("duchi", "block", "strings", "record")


def year(folder: Path) -> Path:
    """A year of hours of 10 values, of which all names but one are short."""
    save(folder / "results", 365 * 24)
    page(folder / "results")
    return folder / "report.html"


def manhattan(folder: Path) -> Path:
    """Three hours of the demonstration, with tags, a map and the truth."""
    spec, truth = MANHATTAN / "spec.yaml", MANHATTAN / "truth.csv"
    _run("simulate", spec, "--truth", truth, "--users", 30_000, "--to", folder / "stream")
    _run("backfill", "--spec", spec, "--from", folder / "stream", "--to", folder / "results")
    _run("report", folder / "results", "--out", folder / "report.html", "--truth", truth, "--grid", "25x25")
    return folder / "report.html"


def every_kind(folder: Path) -> Path:
    """Numbers, a histogram, strings and records, two hours of each."""
    for name in _KINDS:
        (part := folder / name).mkdir()
        spec, truth = write_spec(part, CASES[name][0] | {"collection": name}), part / "truth.csv"
        truth.write_text(CASES[name][1], encoding="utf-8")
        _run("simulate", spec, "--truth", truth, "--users", 3_000, "--duration", "2h", "--to", part / "stream")
        _run("backfill", "--spec", spec, "--from", part / "stream", "--to", part / "results")
    _run("merge", *(folder / name / "results" for name in _KINDS), "--to", folder / "results")
    _run("report", folder / "results", "--out", folder / "report.html")
    return folder / "report.html"


def _run(*arguments: str | int | Path) -> None:
    cli.main([str(argument) for argument in arguments], standalone_mode=False)
