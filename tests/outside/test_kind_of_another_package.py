"""A kind of domain that a package from outside of this tree brings, with its mechanism, through every command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside.conftest import FAVOURITES, Run

#: The mean score of each candidate, from truth.csv: places count 1, 2/3 and 1/3, and one list has a fourth.
SCORES = {
    "anthem": 0.4 + 0.2 * 2 / 3,
    "ballad": 0.4 * 2 / 3 + 0.2,
    "chorale": 0.0,
    "dirge": 0.0,
    "etude": 0.4 / 3,
    "fugue": 0.15 + 0.15 / 3,
    "gavotte": 0.15 * 2 / 3,
    "hymn": 0.15,
}

#: One worker installs the package, and the others do not.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("outside")]


@pytest.fixture
def songs(tmp_path: Path) -> Path:
    """A folder with the files of the example."""
    for name in ("songs.yaml", "truth.csv"):
        (tmp_path / name).write_bytes((FAVOURITES / name).read_bytes())
    return tmp_path


def test_every_command_knows_it(uldp: Run, songs: Path) -> None:
    checked = uldp("check", "songs.yaml", "--users", "20000")
    assert "over lists of 8 candidates, of which a device reports the first 3" in checked
    uldp("simulate", "songs.yaml", "--truth", "truth.csv", "--users", "20000", "--to", "stream")
    uldp("backfill", "--spec", "songs.yaml", "--from", "stream", "--to", "results")
    (estimate,) = map(json.loads, uldp("show", "--json", "results").splitlines())
    (table,) = estimate["tables"]
    assert estimate["flags"] == []
    for score, stderr, truth in zip(table["unbiased"], table["stderr"], SCORES.values(), strict=True):
        assert abs(score - truth) < 4.5 * stderr  # one of 20,000 runs fails
    assert "in % of the score if all users named it first" in uldp("show", "results")
    uldp("report", "results", "--out", "page.html")
    uldp("export", "results", "--to", "rows.csv")
    assert "anthem" in uldp("ask", "results", "--every", "1d")
    assert "favourites" in json.loads(uldp("schema"))["$defs"]["Domain"]["properties"]


def test_reports_of_one_list_follow_the_mechanism_and_those_of_another_do_not(uldp: Run, songs: Path) -> None:
    held = "hymn>gavotte"
    (songs / "one.csv").write_text(f"favourites,weight\n{held},1\n", encoding="utf-8")
    uldp("simulate", "songs.yaml", "--truth", "one.csv", "--users", "20000", "--to", "one")
    assert "follow" in uldp("verify", "--spec", "songs.yaml", "--value", held, "one")
    with pytest.raises(AssertionError, match="the client does not follow favourites-ss"):
        uldp("verify", "--spec", "songs.yaml", "--value", "gavotte>hymn", "one")


def test_devices_keep_responses_to_lists(uldp: Run, songs: Path) -> None:
    spec = songs / "songs.yaml"
    kept = spec.read_text(encoding="utf-8").replace("epsilon: 2.0", "epsilon: 2.0, lasting_epsilon: 3.0")
    spec.write_text(kept, encoding="utf-8")
    assert "and 3 for two or more of one value, over lists of 8 candidates" in uldp("check", "songs.yaml")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("at_most: 0", "domain.favourites.at_most: must be 1 or more"),
        ("at_most: 9", "domain.favourites.at_most: there are 8 different candidates, got 9; write 8 or fewer"),
        ("at_most: 3, size: 3", "domain.favourites.size: unknown key"),
    ],
)
def test_mistakes_in_its_keys_are_named(uldp: Run, songs: Path, said: str, message: str) -> None:
    spec = songs / "songs.yaml"
    text = spec.read_text(encoding="utf-8").replace("at_most: 3", said.replace(", ", "\n    "))
    spec.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=message):
        uldp("check", "songs.yaml")


def test_without_the_package_the_error_names_the_kind(songs: Path) -> None:
    command = [str(Path(sys.executable).with_name("uldp")), "check", "songs.yaml"]
    done = subprocess.run(command, cwd=songs, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "domain.favourites: unknown key" in done.stderr
