"""A mechanism that a package from outside of this tree brings, through every command."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside.conftest import Run
from tests.outside.copied_family import NAME

PACKAGE = Path(__file__).parent / "forced_response"
PAGE = Path(__file__).parents[2] / "docs" / "own_mechanism.md"
SPEC = """
collection: survey
version: 1
domain: {labels: [never, once, often]}
mechanism: {name: forced-response, epsilon: 2.0}
window: {size: 1h}
"""
NUMBER = """
collection: hours
version: 1
domain: {{number: {{low: 0, high: 24}}}}
mechanism: {{name: {name}, epsilon: 1.0}}
window: {{size: 1h}}
"""
SHARES = {"never": 0.5, "once": 0.3, "often": 0.2}

#: One worker installs the package, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("outside")]


def shares(lines: str) -> list[list[float]]:
    """The shares of each window, from the lines that ``uldp show --json`` prints."""
    estimates = [json.loads(line) for line in lines.splitlines()]
    assert {each["mechanism"] for each in estimates} == {"forced-response"}
    return [each["tables"][0]["values"] for each in estimates]


def test_the_page_shows_the_package() -> None:
    shown = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert shown == [(PACKAGE / name).read_text(encoding="utf-8") for name in ("forced_response.py", "pyproject.toml")]


def test_every_command_knows_it(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(SPEC, encoding="utf-8")
    rows = "".join(f"{label},,{share}\n" for label, share in SHARES.items())
    (tmp_path / "truth.csv").write_text(f"value,tag,weight\n{rows}", encoding="utf-8")
    assert "forced-response, epsilon 2 nats a report" in uldp("check", "survey.yaml", "--users", "20000")
    uldp("simulate", "survey.yaml", "--truth", "truth.csv", "--users", "20000", "--to", "stream")
    uldp("backfill", "--spec", "survey.yaml", "--from", "stream", "--to", "one")
    uldp("stream", "--spec", "survey.yaml", "--from", "stream", "--to", "followed")
    workers = ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
    uldp("backfill", "--spec", "survey.yaml", "--from", "stream", "--to", "two", *workers)
    one, followed, two = (shares(uldp("show", "--json", out)) for out in ("one", "followed", "two"))
    assert two == one
    for window in (*one, *followed):  # a stream leaves late reports out
        assert window == pytest.approx(list(SHARES.values()), abs=0.04)
    uldp("export", "one", "--to", "rows.csv")
    uldp("report", "one", "--out", "page.html")


def test_reports_may_support_no_value(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(SPEC.replace("forced-response", "drawn-bit"), encoding="utf-8")
    rows = "".join(f"{label},,{share}\n" for label, share in SHARES.items())
    (tmp_path / "truth.csv").write_text(f"value,tag,weight\n{rows}", encoding="utf-8")
    assert "drawn-bit, epsilon 2 nats a report" in uldp("check", "survey.yaml", "--users", "20000")
    uldp("simulate", "survey.yaml", "--truth", "truth.csv", "--users", "20000", "--to", "stream")
    uldp("backfill", "--spec", "survey.yaml", "--from", "stream", "--to", "results")
    shown = [json.loads(line) for line in uldp("show", "--json", "results").splitlines()]
    assert {each["mechanism"] for each in shown} == {"drawn-bit"}
    assert not any(each["flags"] for each in shown)
    (never, once, often) = (json.loads(line) for line in uldp("ask", "results", "--every", "1d", "--json").splitlines())
    for each, share in zip((never, once, often), SHARES.values(), strict=True):
        assert each["low"] - 0.02 < share < each["high"] + 0.02
    (summed,) = (
        json.loads(line)
        for line in uldp("ask", "results", "--every", "1d", "--sum", "never,once", "--json").splitlines()
    )
    assert summed["estimate"] == pytest.approx(0.8, abs=0.05)
    uldp("ask", "results", "--explain", "2026-01-05T09", "never")
    uldp("export", "results", "--to", "rows.csv")
    uldp("report", "results", "--out", "page.html")


def test_a_family_of_the_project_is_the_same_from_outside(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("value,weight\n7,1\n9.5,3\n", encoding="utf-8")
    for name in ("geometric", NAME):
        (tmp_path / f"{name}.yaml").write_text(NUMBER.format(name=name), encoding="utf-8")
    uldp("simulate", f"{NAME}.yaml", "--truth", "truth.csv", "--users", "500", "--to", "stream")

    def said(name: str) -> tuple[str, list[dict[str, object]], str]:
        checked = uldp("check", f"{name}.yaml")
        uldp("backfill", "--spec", f"{name}.yaml", "--from", "stream", "--to", name)
        shown = [json.loads(line) for line in uldp("show", "--json", name).splitlines()]
        assert {each.pop("mechanism") for each in shown} == {name}
        (digest,) = {str(each.pop("device_digest")) for each in shown}  # it is of all that devices do, and has the name
        uldp("export", name, "--to", f"{name}.csv")
        exported = (tmp_path / f"{name}.csv").read_text(encoding="utf-8")
        return checked.replace(name, "NAME"), shown, exported.replace(name, "NAME").replace(digest, "DIGEST")

    assert said(NAME) == said("geometric")


def test_without_the_package_the_error_names_the_mechanism(tmp_path: Path) -> None:
    (tmp_path / "survey.yaml").write_text(SPEC, encoding="utf-8")
    command = [str(Path(sys.executable).with_name("uldp")), "check", "survey.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mechanism.name: must be one of" in done.stderr
    assert "got 'forced-response'" in done.stderr
