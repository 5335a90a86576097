"""Public attributes through the commands: one stream of reports in slices, and what each command makes of it."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.build import START
from tests.pipelines.command import Run, run
from uldp.mechanisms.devices.device import Device
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.errors import RequestError
from uldp.schemas.records import Message, Report
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

SPEC = """
collection: crashes
version: 1
domain: {labels: [none, one, several]}
by:
  os: [android, ios]
  channel: [stable, beta]
mechanism: {name: oue, epsilon: 4.0}
window: {size: 1h}
limits: {min_reports: 50}
"""
TRUTH = """value,by.os,by.channel,weight
none,android,stable,60
one,android,stable,20
several,ios,stable,15
one,ios,beta,5
"""
USERS = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spec, a truth, a stream of reports of which one names no slice, and the results of a backfill."""
    folder = tmp_path_factory.mktemp("slices")
    (folder / "spec.yaml").write_text(SPEC)
    (folder / "truth.csv").write_text(TRUTH)
    spec, stream = folder / "spec.yaml", folder / "stream"
    of_users: list[str | int | Path] = ["--truth", folder / "truth.csv", "--users", USERS, "--seed", "3"]
    run("simulate", spec, *of_users, "--to", stream)
    unknown = Report("crashes", 1, bytes(16), START, bytes([4, 0, 0x80])).encode()
    LocalStream.create(folder / "unknown").append([Message(unknown, START)])
    run("backfill", "--spec", spec, "--from", stream, "--to", folder / "out", "--private-to", folder / "private")
    return folder


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.nightly
def test_a_stream_counts_each_slice_as_a_backfill_does(folder: Path, tmp_path: Path) -> None:
    out, private = tmp_path / "out", tmp_path / "private"
    run("stream", "--spec", folder / "spec.yaml", "--from", folder / "stream", "--to", out, "--private-to", private)
    both = ((folder / "out", folder / "private"), (out, private))
    one, other = (newest(ResultsFolder(path, private=apart).statistics()) for path, apart in both)
    assert [each.cells.tolist() for each in one] == [each.cells.tolist() for each in other]
    assert sum(each.n for each in one) == USERS


def test_a_report_of_an_unknown_slice_is_rejected(folder: Path, uldp: Run) -> None:
    code, text, _ = uldp("decode", "--spec", folder / "spec.yaml", folder / "unknown")
    assert code == 1
    assert "rejected as impossible_payload" in text


def test_slices_are_shown_but_not_those_of_few_reports_or_what_would_show_them(folder: Path, uldp: Run) -> None:
    code, text, _ = uldp("show", folder / "out", "--last", "1")
    assert code == 0
    (estimate,) = lines(uldp("show", folder / "out", "--last", "1", "--json")[1])
    found = {tuple(table["of"]): table["n"] for table in estimate["tables"] if table["name"] == "share"}
    # The slice of 5 % has too few reports, and that of 15 % less than the total less the largest would show it.
    assert found.keys() == {(), ("os=android", "channel=stable")}
    assert found[()] == estimate["n"]
    assert f"os=android, channel=stable  n {found['os=android', 'channel=stable']}" in text
    assert "os=ios" not in text


def test_ask_answers_for_each_value_of_a_public_attribute(folder: Path, uldp: Run) -> None:
    of_all = "ask", folder / "out", "--private", folder / "private", "--every", "1d", "--json"
    code, text, _ = uldp(*of_all, "--by", "os")
    answers = lines(text)
    assert code == 0
    n = {each["slice"]: each["n"] for each in answers}
    assert n.keys() == {"os=android", "os=ios"}
    assert sum(n.values()) == USERS
    shares = {(each["slice"], each["label"]): each["estimate"] for each in answers if each["quantity"] == "share"}
    assert shares["os=android", "one"] == pytest.approx(0.25, abs=0.1)
    assert shares["os=ios", "several"] == pytest.approx(0.75, abs=0.15)


def test_rows_name_the_slice(folder: Path, uldp: Run, tmp_path: Path) -> None:
    assert uldp("export", folder / "out", "--to", tmp_path / "rows.csv")[0] == 0
    with (tmp_path / "rows.csv").open(newline="") as rows:
        assert {row["slice"] for row in csv.DictReader(rows)} == {"", "os=android, channel=stable"}


@pytest.mark.parametrize(
    ("by", "code", "said"),
    [
        (["os=ios", "channel=beta"], 0, "the reports follow oue"),
        (["os=ios", "channel=stable"], 1, "1,000 reports name os=ios, channel=beta, not os=ios, channel=stable"),
        (["os=ios"], 1, "has the public attribute channel; add --by channel=VALUE"),
        (["os=io", "channel=beta"], 1, "by.os has no value 'io' (did you mean 'ios'?)"),
    ],
)
def test_verify_tests_the_slice_of_a_client(
    by: list[str], code: int, said: str, folder: Path, uldp: Run, tmp_path: Path
) -> None:
    device = Device(CollectionSpec.load(folder / "spec.yaml"), {}, np.random.default_rng(6))
    reports = [device.report(1, START, {"os": "ios", "channel": "beta"}) for _ in range(1000)]
    LocalStream.create(tmp_path / "sent").append([Message(each, START) for each in reports])
    given = [word for each in by for word in ("--by", each)]
    found, out, err = uldp("verify", tmp_path / "sent", "--spec", folder / "spec.yaml", "--value", "one", *given)
    assert found == code
    assert said in out + err


def test_a_truth_needs_the_public_attributes(folder: Path, tmp_path: Path) -> None:
    spec = CollectionSpec.load(folder / "spec.yaml")
    assert Truth.load(folder / "truth.csv", spec).distribution() == pytest.approx([0.6, 0.25, 0.15])
    for text, message in (
        ("value,weight\nnone,1\n", "by.os"),
        ("value,by.os,by.channel,weight\nnone,windows,beta,1\n", "by.os has no value 'windows'"),
    ):
        (tmp_path / "truth.csv").write_text(text)
        with pytest.raises(RequestError, match=message):
            Truth.load(tmp_path / "truth.csv", spec)


def test_the_page_has_a_table_of_slices_and_one_of_each_large_slice(folder: Path, uldp: Run, tmp_path: Path) -> None:
    assert uldp("report", folder / "out", "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('<th scope="row"><span class="label">os=android, channel=stable</span></th>') == 1
    (choice,) = re.findall(r'<div class="choice" data-label="Slice">(.*?)\n</div>\n', page, re.DOTALL)
    assert re.findall(r"<h3 [^>]*>(.*?) <small>", choice) == ["os=android, channel=stable"]
    assert "A report names its os and channel openly" in page
