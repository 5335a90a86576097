"""``uldp advise`` of a number: ``block`` where the shape is smooth, ``tree`` where it has spikes, by their errors."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.pipelines.command import Run
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.numbers.outputs import Shape, SimulatesBins
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.advice.ranges import range_errors
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

NUMBER = {"number": {"low": 0, "high": 32}}
BINS, USERS, WINDOWS = 32, 1000, 60
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
        held = Held(rng.choice(POSITIONS, USERS, p=SPIKES.shares), np.full(USERS, -1))
        symbols = protocol.encoding.encode([held], rng)
        cells = protocol.mechanism.statistic(protocol.mechanism.perturb(symbols, rng))
        tables = protocol.decoder.tables(np.asarray(cells), USERS, estimator)
        shares = next(table.values for table in tables if table.name is TableName.SHARE)
        below = np.concatenate([[0.0], np.cumsum(shares - SPIKES.of_bins(BINS))])
        squares.append(((below[end] - below[begin]) ** 2).mean())
    assert isinstance(protocol.decoder, SimulatesBins)
    assert protocol.decoder.bins_estimator == estimator
    forecast = range_errors(protocol.decoder, SPIKES, BINS, USERS).random ** 2
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


def test_an_l1_error_of_a_number_is_refused(uldp: Run, tmp_path: Path) -> None:
    keys = {"collection": "c", "version": 1, "domain": NUMBER, "window": {"size": "1d"}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(keys | {"mechanism": {"name": "duchi", "epsilon": 1.0}}))
    code, out, errors = uldp("advise", tmp_path / "c.yaml", "--epsilon", "1", "--error", "0.1")
    assert (code, out) == (1, "")
    assert "of a number, give --epsilon and --users" in errors
