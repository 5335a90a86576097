"""``uldp advise`` of rankings and records: what it promises, which is what reports give, and what it leaves out."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.marginals.views import all_of, error
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.cli import cli
from uldp.schemas.specs.collection import CollectionSpec

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
