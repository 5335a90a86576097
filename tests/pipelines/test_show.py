"""Results at the command line: those that a user chooses, and those that are damaged."""

import json
import sys
from pathlib import Path

import pytest

from tests.pipelines.command import SPEC, Run
from uldp.pipelines.cli import main


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
        ("--collection", "manhattan", "the results have no collection 'manhattan'; did you mean 'manhattan-checkins'?"),
        ("--estimator", "mlee", "the results have no estimator 'mlee'; did you mean 'mle'? choose one of: mle"),
    ],
)
def test_show_names_what_there_is(option: str, name: str, message: str, uldp: Run, results: Path) -> None:
    code, out, err = uldp("show", results, option, name)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
