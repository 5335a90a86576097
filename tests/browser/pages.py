"""Pages as users see them, each made by the commands or from counts."""

from pathlib import Path
from typing import Any

import yaml

from tests.pipelines.command import MANHATTAN, counted, run
from tests.pipelines.report.test_long_history import save
from tests.pipelines.report.test_page import page
from tests.pipelines.test_every_mechanism import CASES, write_spec

_AGES = {
    "domain": {"number": {"low": 0, "high": 100}},
    "mechanism": {"name": "tree", "epsilon": 2.0, "bins": 100},
    "ranges": [[0, 18], [18, 65], [65, 100]],
}
_AGES_HELD = "value,weight\n" + "".join(f"{age + 0.5},{(100 - age) * (age + 20)}\n" for age in range(100))
_VOTES = {
    "domain": {"ranking": {"of": ["mail", "maps", "news", "weather of the whole week"]}},
    "mechanism": {"name": "pairs", "epsilon": 2.0},
}
_VOTES_HELD = """ranking,weight
mail>maps>news>weather of the whole week,3
maps>news>mail>weather of the whole week,2
weather of the whole week>mail>maps>news,1
"""
_APPS = {
    "domain": {"set": {"of": {"labels": ["mail", "maps", "chat", "music", "news"]}, "at_most": 3}},
    "mechanism": {"name": "set-ss", "epsilon": 2.0},
}
_APPS_HELD = "items,weight\nmail;maps,3\nmail;maps;chat,2\n,1\nmusic,1\nchat;news,2\n"

#: The collections of the page of all kinds: keys of a spec, and what users hold.
_KINDS: dict[str, tuple[dict[str, Any], str]] = {name: CASES[name] for name in ("duchi", "block", "strings", "record")}
_KINDS |= {"ages": (_AGES, _AGES_HELD), "votes": (_VOTES, _VOTES_HELD), "apps": (_APPS, _APPS_HELD)}


def year(folder: Path) -> Path:
    """A year of hours of 10 values, of which all names but one are short."""
    save(folder / "results", 365 * 24)
    page(folder / "results")
    return folder / "report.html"


def manhattan(folder: Path) -> Path:
    """Three hours of the demonstration, with tags, a map and the truth."""
    spec, truth = MANHATTAN / "spec.yaml", MANHATTAN / "truth.csv"
    run("simulate", spec, "--truth", truth, "--users", 30_000, "--to", folder / "stream")
    run("backfill", "--spec", spec, "--from", folder / "stream", "--to", folder / "results")
    run("report", folder / "results", "--out", folder / "report.html", "--truth", truth)
    return folder / "report.html"


def every_kind(folder: Path) -> Path:
    """Numbers, a histogram, ranges, strings, records, votes and sets, two hours of each."""
    for name, (keys, held) in _KINDS.items():
        (part := folder / name).mkdir()
        spec = write_spec(part, keys | {"collection": name})  # with the files that it names
        counted(part, yaml.safe_load(spec.read_text(encoding="utf-8")), held, 3_000, "--duration=2h")
    run("merge", *(folder / name / "results" for name in _KINDS), "--to", folder / "results")
    run("report", folder / "results", "--out", folder / "report.html")
    return folder / "report.html"


MAKERS = {"year": year, "manhattan": manhattan, "kinds": every_kind}


def made(folder: Path, *names: str) -> dict[str, Path]:
    """Make pages, each in a folder of its own."""
    for name in names or MAKERS:
        (folder / name).mkdir()
    return {name: MAKERS[name](folder / name) for name in names or MAKERS}
