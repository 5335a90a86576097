"""``uldp advise`` of numbers, rankings and records: what it promises is what reports give; and what it leaves out."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from tests.pipelines.command import Run
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.records.views import all_of, error
from uldp.mechanisms.numbers.outputs import Shape, SimulatesBins
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.advice.ranges import range_errors
from uldp.pipelines.cli import cli
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

RECORD = "{record: {version: {size: 3}, os: {size: 2}, crash: {size: 2}, arm: {size: 2}}}"
SIZES = (3, 2, 2, 2)
USERS = 20_000


def advised(folder: Path, domain: str, mechanism: str, *options: str, more: str = "") -> tuple[int, str]:
    text = f"collection: c\nversion: 1\nwindow: {{size: 1d}}\ndomain: {domain}\nmechanism: {mechanism}\n{more}"
    (folder / "spec.yaml").write_text(text)
    result = CliRunner().invoke(
        cli, ["advise", str(folder / "spec.yaml"), *(options or ("--epsilon", "1", "--users", str(USERS)))]
    )
    return result.exit_code, str(result.exception) if result.exception and not result.output else result.output


def printed(output: str) -> dict[str, Any]:
    keys: dict[str, Any] = yaml.safe_load(output.split("\n# ", 1)[1].split("\n", 1)[1])
    CollectionSpec.parse(keys)
    return keys


def promises(output: str) -> dict[tuple[str, str], list[str]]:
    rows = [line.split() for line in output.splitlines() if line.startswith(("marginals ", "sample-one "))]
    return {(row[0], row[1]): row[2:] for row in rows if len(row) == 4}


def test_a_ranking_has_the_errors_of_warners_response(tmp_path: Path) -> None:
    code, output = advised(tmp_path, "{ranking: {of: [a, b, c, d]}}", "{name: pairs, epsilon: 3, lasting_epsilon: 4}")
    assert code == 0
    # A sixth of the users compare two candidates, half of whom prefer one.
    share = 0.5 / (math.tanh(0.5) * math.sqrt(USERS / 6))
    assert f"prefer one of two {share:.3g}, of a mean Borda score {share * math.sqrt(3):.3g}" in output
    assert printed(output)["mechanism"] == {"name": "pairs", "epsilon": 1.0, "lasting_epsilon": 4}


def test_the_best_views_of_a_record_are_first(tmp_path: Path) -> None:
    code, output = advised(tmp_path, RECORD, "{name: marginals, epsilon: 3}", more="given: [[version, os]]\n")
    assert code == 0
    found = promises(output)
    assert set(found) == {("marginals", "pairs"), ("marginals", "triples"), ("marginals", "auto"), ("sample-one", "-")}
    two = {views: float(of[0]) for (name, views), of in found.items() if name == "marginals"}
    assert list(two.values()) == sorted(two.values())
    by_formula = error(SIZES, all_of(4, 3), 1.0) / error(SIZES, all_of(4, 2), 1.0)
    assert (two["triples"] / two["pairs"]) ** 2 == pytest.approx(by_formula, rel=0.02)  # three digits are printed
    assert found["sample-one", "-"][0] == "none"
    # A quarter of the users report each attribute, by randomized response.
    gain = math.e - 1
    squares = [(1 - 1 / k) * ((gain + k) / gain) ** 2 / (USERS / 4) for k in SIZES]
    assert float(found["sample-one", "-"][1]) == pytest.approx(math.sqrt(np.mean(squares)), rel=0.005)
    keys = printed(output)
    assert keys["mechanism"] == {"name": "marginals", "epsilon": 1.0, "views": next(iter(two))}
    assert keys["given"] == [["version", "os"]]


def test_a_promise_is_kept_by_reports(tmp_path: Path) -> None:
    _, output = advised(tmp_path, RECORD, "{name: marginals, epsilon: 3}")
    promised = float(promises(output)["marginals", "triples"][0])
    keys = printed(output) | {"mechanism": {"name": "marginals", "epsilon": 1.0, "views": "triples"}}
    protocol, rng, found = build_protocol(CollectionSpec.parse(keys)), np.random.default_rng(5), []
    for _ in range(60):
        columns = [
            Held(np.arange(USERS) // each % size, np.full(USERS, -1))
            for each, size in zip((1, 3, 6, 12), SIZES, strict=True)
        ]
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(protocol.encoding.encode(columns, rng), rng))
        tables = [
            each
            for each in protocol.decoder.tables(cells, USERS, "empirical")
            if len(each.of) == 2 and each.name == "share"
        ]
        assert len(tables) == 6
        found.append(np.mean([((each.values - 1 / each.values.size) ** 2).sum() for each in tables]))
    assert abs(np.mean(found) - promised**2) < 4 * np.std(found) / math.sqrt(len(found)) + 0.01 * promised**2


@pytest.mark.parametrize(
    ("domain", "mechanism", "options", "message"),
    [
        (RECORD, "{name: marginals, epsilon: 1}", ["--epsilon", "1", "--error", ".1"], "a record, give --epsilon and"),
        (
            "{number: {low: 0, high: 9}}",
            "{name: duchi, epsilon: 1}",
            ["--error", ".1"],
            "of a number, give --epsilon and",
        ),
        (RECORD, "{name: marginals, epsilon: 1}", ["--epsilon", "nan", "--users", "9"], "--epsilon must be 1e-06 or"),
        (RECORD, "{name: marginals, epsilon: 1}", ["--epsilon", "1", "--users", "9", "--truth", "spec.yaml"], "leave"),
        (
            "{numbers: {names: [a, b], low: 0, high: 1}}",
            "{name: duchi, epsilon: 1}",
            ["--epsilon", "1", "--users", "9"],
            "no mechanism has tables of two attributes of this record",
        ),
    ],
)
def test_a_wrong_question_is_one_clear_line(
    tmp_path: Path, domain: str, mechanism: str, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = advised(tmp_path, domain, mechanism, *options)
    assert code != 0
    assert message in output


NUMBER = {"number": {"low": 0, "high": 32}}
BINS, DEVICES, WINDOWS = 32, 1000, 60
POSITIONS = np.array([2.5, 9.25, 20.0, 31.0])
SPIKES = Shape(POSITIONS / BINS, np.array([0.4, 0.3, 0.2, 0.1]))


@pytest.mark.parametrize(("name", "estimator"), [("tree", "auto"), ("block", "ems")])
def test_the_errors_are_those_of_reports(name: str, estimator: str) -> None:
    """The mean square over all ranges with ends at edges, of windows of devices: within 4.5 standard errors of it."""
    mechanism = {"name": name, "epsilon": 2.0, "bins": BINS}
    keys = {"collection": "c", "version": 1, "domain": NUMBER, "mechanism": mechanism, "window": {"size": "1d"}}
    protocol, rng = build_protocol(CollectionSpec.parse(keys)), np.random.default_rng(4)
    begin, end = np.triu_indices(BINS + 1, 1)
    squares = []
    for _ in range(WINDOWS):
        held = Held(rng.choice(POSITIONS, DEVICES, p=SPIKES.shares), np.full(DEVICES, -1))
        symbols = protocol.encoding.encode([held], rng)
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
        tables = protocol.decoder.tables(np.asarray(cells), DEVICES, estimator)
        shares = next(table.values for table in tables if table.name is TableName.SHARE)
        below = np.concatenate([[0.0], np.cumsum(shares - SPIKES.of_bins(BINS))])
        squares.append(((below[end] - below[begin]) ** 2).mean())
    assert isinstance(protocol.decoder, SimulatesBins)
    assert protocol.decoder.bins_estimator == estimator
    forecast = range_errors(protocol.decoder, SPIKES, BINS, DEVICES).random ** 2
    # Of ranges with random ends, 1 in 33 is empty. The forecast is of eight windows.
    found, error = np.mean(squares) * BINS / (BINS + 1), np.std(squares) * np.sqrt(1 / WINDOWS + 1 / 8)
    assert abs(forecast - found) < 4.5 * error


@pytest.mark.parametrize(
    ("rows", "better"),
    [
        (["2.5,4", "9.5,3", "20.5,2", "31.5,1"], "tree"),
        ([f"{x + 0.5},{(x + 1) * (32 - x) ** 2}" for x in range(32)], "block"),
    ],
)
def test_the_shape_decides(uldp: Run, tmp_path: Path, rows: list[str], better: str) -> None:
    keys = {"collection": "c", "version": 1, "domain": NUMBER, "window": {"size": "1d"}, "ranges": [[0, 16]]}
    mechanism = {"name": "tree", "epsilon": 1.0, "bins": BINS}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(keys | {"mechanism": mechanism}))
    (tmp_path / "truth.csv").write_text("\n".join(["value,weight", *rows]) + "\n")
    arguments = ("--epsilon", "1", "--users", "20000", "--truth", tmp_path / "truth.csv")
    code, text, _ = uldp("advise", tmp_path / "c.yaml", *arguments)
    assert code == 0
    advised = text.partition(f"# {better}, the better of both; check it with uldp check\n")[2]
    assert CollectionSpec.parse(yaml.safe_load(advised)).mechanism.name == better


def test_without_a_shape_the_intervals_are_what_is_unbiased(uldp: Run, tmp_path: Path) -> None:
    keys = {"collection": "c", "version": 1, "domain": NUMBER, "window": {"size": "1d"}}
    mechanism = {"name": "tree", "epsilon": 1.0, "bins": 8}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(keys | {"mechanism": mechanism}))
    code, text, _ = uldp("advise", tmp_path / "c.yaml", "--epsilon", "1", "--users", "2000")
    assert code == 0
    assert "intervals of tree are around unbiased estimates whatever the shape; give the shape by --truth" in text
