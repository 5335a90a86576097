"""uldp init: answers become a spec that passes uldp check."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.pipelines.command import Run
from uldp.pipelines.advice.question import Question
from uldp.pipelines.advice.ranking import rank
from uldp.pipelines.cli import cli
from uldp.schemas.errors import UldpError
from uldp.schemas.specs.collection import CollectionSpec

VALUES = ["survey", "shares", "never, once,often , always", "often, always", "1", "1h", "2", "20000"]
MEAN = ["temperature", "mean", "-20", "40.5", "0.5", "1d", "3", "1000"]


def init(file: Path, answers: Sequence[str]) -> Result:
    return CliRunner().invoke(cli, ["init", str(file)], input="".join(f"{answer}\n" for answer in answers))


def keys(file: Path) -> dict[str, object]:
    loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    file = tmp_path_factory.mktemp("init") / "survey.yaml"
    return file, init(file, VALUES)


def test_answers_about_values_become_a_spec(survey: tuple[Path, Result]) -> None:
    file, done = survey
    assert done.exit_code == 0, done.output
    found = keys(file)
    mechanism = found.pop("mechanism")
    assert found == {
        "collection": "survey",
        "version": 1,
        "domain": {"labels": ["never", "once", "often", "always"]},
        "sensitive": ["often", "always"],
        "window": {"size": "1h", "allowed_lateness": "10m"},
        "budget": {"epsilon": 2.0, "every": "30d"},
    }
    asked = Question({**found, "sensitive": ["often", "always"]}, Path(), None, 1.0, 20_000, None)
    ranked, _ = rank(asked, lambda mechanism: None)
    assert mechanism == ranked[0].spec["mechanism"]


def test_the_spec_passes_check_without_a_warning(survey: tuple[Path, Result], uldp: Run) -> None:
    file, done = survey
    code, out, _ = uldp("check", file, "--users", "20000")
    assert (code, "warning" in out) == (0, False)
    assert f"next: uldp check {file} --users 20000 --days 90" in done.output


@pytest.mark.parametrize(
    ("answers", "mechanism"),
    [(MEAN, "duchi"), ([*MEAN[:4], "2", *MEAN[5:]], "block"), (["x", "distribution", *MEAN[2:]], "block")],
)
def test_a_number_has_the_mechanism_of_what_is_asked(tmp_path: Path, answers: list[str], mechanism: str) -> None:
    done = init(tmp_path / "n.yaml", answers)
    assert done.exit_code == 0, done.output
    spec = CollectionSpec.load(tmp_path / "n.yaml")
    assert (spec.mechanism.name, spec.variables[""].kind.ends) == (mechanism, (-20, 40.5))


def test_an_answer_that_is_none_is_asked_again(tmp_path: Path) -> None:
    answers = ["A Name", "warm", "median", "mean", "low", "-20", "40.5", "99", "0.5", "a day", "1d", "0", "3", "1000"]
    done = init(tmp_path / "n.yaml", answers)
    assert done.exit_code == 0, done.output
    assert done.output.count("Error: ") == 6
    assert keys(tmp_path / "n.yaml")["collection"] == "warm"


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ([*VALUES[:3], "oftn", *VALUES[4:]], "'oftn' is none of the values; did you mean 'often'?"),
        (["x", "mean", "40", "-20", *MEAN[4:]], "low"),
        (["x", "shares", "a,b", "all", "1", "0s", "1", "5"], "size must be more than 0"),
    ],
)
def test_answers_that_contradict_each_other_write_nothing(tmp_path: Path, answers: list[str], says: str) -> None:
    done = init(tmp_path / "n.yaml", answers)
    assert isinstance(done.exception, UldpError)
    assert says in str(done.exception)
    assert not (tmp_path / "n.yaml").exists()


def test_a_file_that_is_there_is_left_alone(uldp: Run, tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("mine")
    assert uldp("init", file) == (1, "", f"error: {file}: is there already; name a new file\n")
    assert file.read_text() == "mine"


def test_labels_that_yaml_would_read_otherwise_stay_text(tmp_path: Path) -> None:
    done = init(tmp_path / "n.yaml", ["x", "shares", "yes, no, 1, null, <b>: #", "all", "1", "1h", "1", "1000"])
    assert done.exit_code == 0, done.output
    assert CollectionSpec.load(tmp_path / "n.yaml").labels == ["yes", "no", "1", "null", "<b>: #"]
