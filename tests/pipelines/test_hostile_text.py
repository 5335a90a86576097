"""Hostile text of files, names and records neither commands a terminal nor reorders a page."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import build
from tests.pane_files import estimate_file, statistic_file
from tests.pipelines.command import Run
from uldp.schemas.rejected import Rejected
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import printable
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.results.names import stored_file

#: Escape, C1's control sequence introducer, bell, delete, overrides, isolates, marks, and separators of lines.
HOSTILE = (
    "\x1b[2J\x9b2J\x07\x7f\r\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2028\u2029\x85"
)
#: The part of it that a file name may hold; an end of a line too.
NAME = f"x{HOSTILE}\ny"
BAD = {character for character in HOSTILE if not character.isprintable()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A results folder with a hostile name, hostile labels, flags and reasons, and damaged files of hostile names."""
    out = tmp_path / NAME
    labels = [f"red{HOSTILE}", "blue"]
    spec = {"collection": "c", "version": 1, "domain": {"labels": labels}, "window": {"size": "1h"}}
    (out / "specs" / "c-v1").mkdir(parents=True)
    (out / "specs" / "c-v1" / "spec.yaml").write_text(json.dumps(spec | {"mechanism": {"name": "rr", "epsilon": 1.0}}))
    digest = CollectionSpec.load(out / "specs" / "c-v1" / "spec.yaml").device_digest
    counts = build.pane([6, 4], start=0, flags=(f"flag{HOSTILE}",), device_digest=digest)
    estimate = build.estimate(counts, [0.6, 0.4], [0.1, 0.1])
    rejected = Rejected("decode", f"reason{HOSTILE}", HOSTILE, (b"",), {}, (0,), "", 1, "0")
    for name, content in (
        statistic_file(counts),
        estimate_file(estimate),
        stored_file("rejected", [encode_record("rejected", rejected.to_avro())], "rejected"),
        (f"counts/{NAME}.avro", b"damaged"),
        (f"rejected/{NAME}.avro", b"damaged"),
        estimate_file(replace(estimate, collection=NAME)),
    ):
        write_file(str(out / name), content)
    return out


def bad_in(text: str) -> set[str]:
    return BAD & set(text)


@pytest.mark.parametrize(("command", "problems"), [("show", 2), ("ask", 1), ("prune", 2)])
def test_no_hostile_text_reaches_a_terminal(uldp: Run, out: Path, command: str, problems: int) -> None:
    code, *printed = uldp(command, out)
    text = "".join(printed)
    assert code == 1
    assert bad_in(text) == set()
    assert sum(line.startswith("error: ") for line in text.splitlines()) == problems  # a line each


def test_no_hostile_label_reaches_an_answer(uldp: Run, tmp_path: Path) -> None:
    label = f"red{HOSTILE}"
    spec = build.MINIMAL | {"domain": {"labels": [label, "blue"]}, "limits": {"min_reports": 1}}
    (tmp_path / "specs" / "c-v1").mkdir(parents=True)
    (tmp_path / "specs" / "c-v1" / "spec.yaml").write_text(json.dumps(spec))
    digest = CollectionSpec.load(tmp_path / "specs" / "c-v1" / "spec.yaml").device_digest
    for hour in range(2):
        counts = build.pane([60, 40], start=hour * build.HOUR, flags=(f"flag{HOSTILE}",), device_digest=digest)
        write_file(str(tmp_path / statistic_file(counts)[0]), statistic_file(counts)[1])
    for question in ((), ("--sum", f'"{label}"'), ("--where", f"*{HOSTILE}"), ("--explain", "1970-01-01T00", label)):
        for as_json in ((), ("--json",)):
            code, text, errors = uldp("ask", tmp_path, *question, *as_json)
            assert (code, errors) == (0, "")
            assert bad_in(text) == set()
    code, text, _ = uldp("ask", tmp_path, "--compare", "1970-01-01T00", "1970-01-01T01")
    assert (code, bad_in(text)) == (0, set())
    code, _, errors = uldp("ask", tmp_path, "--compare", HOSTILE, HOSTILE)
    assert (code, bad_in(errors)) == (1, set())
    assert uldp("ask", tmp_path, "--to", tmp_path / "f.parquet")[0] == 0
    assert bad_in(str(pq.read_table(tmp_path / "f.parquet").to_pylist())) == set()


def test_no_hostile_text_reaches_a_page(uldp: Run, out: Path, tmp_path: Path) -> None:
    for needed in ("jinja2", "matplotlib"):
        pytest.importorskip(needed)
    code, *printed = uldp("report", out, "--out", tmp_path / "page.html")
    assert code == 1
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "reason�" in page
    assert "red�" in page
    assert bad_in("".join([*printed, page])) == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", NAME),
        ("check", f"{NAME}.yaml"),
        ("backfill", "--spec", f"{NAME}.yaml", "--from", NAME, "--to", "out"),
        ("replay", NAME, "--to", "stream"),
        ("decode", HOSTILE),
        ("show", "out", f"--{HOSTILE}"),
        (HOSTILE,),
    ],
    ids=["results", "spec", "job", "rejected", "message", "option", "command"],
)
def test_no_hostile_argument_comes_back(
    uldp: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, *printed = uldp(*arguments)
    text = "".join(printed)
    assert code in (1, 2)
    assert text.startswith("error: ")
    assert bad_in(text) == set()


@pytest.mark.parametrize(
    "code", [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E]
)
def test_control_characters_and_overrides_are_replaced(code: int) -> None:
    assert printable(f"a{chr(code)}b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize("text", ["", "red", "ε = 1, ±0.5 %", "中文", "العربية", "naïve"])
def test_text_of_any_language_stays(text: str) -> None:
    assert printable(text) == text
