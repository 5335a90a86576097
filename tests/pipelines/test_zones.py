"""The commands for zones: divide a tag, learn backgrounds from results, and the price in what uldp check says."""

import csv
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests import build
from tests.families import ANSWER_ZONES, TAKE_TAGS
from tests.pane_files import statistic_file
from tests.pipelines.command import SPEC, Run
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.pipelines.jobs.kept_specs import keep_specs
from uldp.pipelines.results.backgrounds import whole_weights
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import family
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file

MANHATTAN = Path(SPEC).parent
HOUR = build.HOUR


def test_the_zones_of_the_example_are_those_that_the_command_writes(uldp: Run, tmp_path: Path) -> None:
    for tag in ("home", "workplace"):
        path = tmp_path / f"{tag}.csv"
        code, out, err = uldp("zones", SPEC, "--tag", tag, "--count", "156", "--to", path)
        assert (code, err) == (0, "")
        assert "% of reports from behind it name the zone" in out
        assert path.read_bytes() == (MANHATTAN / "zones" / f"{tag}.csv").read_bytes()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--tag", "hom"), "manhattan-checkins has no tag 'hom' (it has home, workplace) (did you mean 'home'?)"),
        (
            ("--tag", "home", "--zone-epsilon", "7"),
            f"--zone-epsilon 7 needs the mechanism {ANSWER_ZONES} with an epsilon of this",
        ),
    ],
)
def test_a_tag_that_cannot_be_divided_is_refused(
    options: tuple[str, ...], text: str, uldp: Run, tmp_path: Path
) -> None:
    code, _, err = uldp("zones", SPEC, *options, "--to", tmp_path / "z.csv")
    assert code == 1
    assert text in err
    assert not (tmp_path / "z.csv").exists()


def test_a_check_proposes_zones_with_their_price_and_only_where_they_pay_off(uldp: Run, tmp_path: Path) -> None:
    assert "possible" not in uldp("check", SPEC, "--users", "179527")[1]
    _, out, _ = uldp("check", SPEC, "--users", "179527", "--zones")
    proposed = [line for line in out.splitlines() if "possible" in line]
    assert "64 behind home: a report is up to 2.72 times as likely from one zone as from another" in proposed[0]
    assert "82.8 % of reports from behind it name the zone" in proposed[1]
    assert "possible" not in uldp("check", SPEC, "--users", "1000", "--zones")[1]
    for name in ("nested.yaml", "zones.yaml"):
        _, out, _ = uldp("check", MANHATTAN / name, "--zones")
        assert "possible" not in out
        assert "zones       156 behind workplace: a report is up to" in out


def hidden(folder: Path, mechanism: dict[str, object]) -> Path:
    (folder / "home.csv").write_text("4,80\n5,80\n6,80\n7,80\n", encoding="utf-8")
    tags = [{"name": "home", "background": "home.csv"}]
    keys = {"domain": {"size": 8}, "sensitive": [0, 1, 2], "mechanism": mechanism, "tags": tags}
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(build.MINIMAL | keys), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", TAKE_TAGS.split(", "))
@pytest.mark.parametrize("kept", [{}, {"lasting_epsilon": 5.0}])
def test_each_mechanism_with_tags_is_checked(name: str, kept: dict[str, float], uldp: Run, tmp_path: Path) -> None:
    path = hidden(tmp_path, {"name": name, "epsilon": 4.0, **family(name).example(8), **kept})
    code, out, err = uldp("check", path, "--zones")
    assert (code, err) == (0, "")
    proposed = [line.split("zones SPEC")[1].split() for line in out.splitlines() if "possible" in line]
    assert proposed
    for _, _, *options in proposed:  # each proposal can be followed
        chosen = options[: options.index("--to")]
        assert uldp("zones", path, "--tag", "home", *chosen, "--to", tmp_path / f"{len(chosen)}.csv")[0] == 0
    assert any("--zone-epsilon" in options for options in proposed) == (family(name).answers_zones and not kept)


LEVELS = {"name": "levels", "levels": {"low": {"epsilon": 2.0}, "high": {"epsilon": 4.0}}, "of": {"name": "urr"}}
KEPT = {"name": "urr", "epsilon": 4.0, "lasting_epsilon": 5.0}


@pytest.mark.parametrize(
    ("mechanism", "options", "error"),
    [
        (LEVELS, (), "levels have no zones; choose urr"),
        (KEPT, ("--zone-epsilon", "1"), "a device keeps no answer about a zone; leave out --zone-epsilon"),
    ],
)
def test_a_mechanism_without_zones_refuses_them(
    mechanism: dict[str, object], options: tuple[str, ...], error: str, uldp: Run, tmp_path: Path
) -> None:
    path = hidden(tmp_path, mechanism)
    code, out, err = uldp("check", path, "--zones")
    assert (code, err, "possible" in out) == (0, "", mechanism is KEPT)
    code, _, err = uldp("zones", path, "--tag", "home", *options, "--to", tmp_path / "z.csv")
    assert (code, error in err) == (1, True)


def results(folder: Path, hours: int = 3, **keys: object) -> CollectionSpec:
    """Results of an hour each, of 20,000 users, a half of whom hide one of the last four of eight values."""
    (folder / "home.csv").write_text("4,8\n5,8\n6,8\n7,8\n", encoding="utf-8")
    (folder / "zones.csv").write_text("4,a\n5,b\n6,c\n7,d\n", encoding="utf-8")
    tags = [{"name": "home", "background": "home.csv", "zones": "zones.csv", "zone_epsilon": 1.0}]
    given = {"domain": {"size": 8}, "sensitive": [0], "mechanism": {"name": "urr", "epsilon": 3.0}, "tags": tags}
    spec = CollectionSpec.parse(build.MINIMAL | given | keys, base=folder)
    keep_specs(str(folder / "out"), [spec])
    protocol = build_protocol(spec)
    for hour in range(hours):
        rng = np.random.default_rng(hour)
        values = rng.choice(8, 20_000, p=[0.1, 0.2, 0.1, 0.1, 0.35, 0.1, 0.05, 0.0])
        held = Held(values, np.where(values >= 4, 0, -1))
        cells = protocol.mechanism.statistic(protocol.perturb([held], rng))
        write(folder / "out", build.pane(cells, start=build.START + hour * HOUR, device_digest=spec.device_digest))
    return spec


def write(out: Path, pane: Statistic) -> None:
    name, content = statistic_file(pane)
    write_file(str(out / name), content)


def weights(path: Path) -> list[float]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = {int(row["value"]): float(row["weight"]) for row in csv.DictReader(file)}
    return [rows.get(value, 0.0) for value in range(8)]


def test_backgrounds_follow_from_the_answers_of_all_windows(uldp: Run, tmp_path: Path) -> None:
    spec = results(tmp_path)
    code, out, err = uldp("background", tmp_path / "out", "--to", tmp_path / "learned")
    assert (code, err) == (0, "")
    assert "c version 1: 3 windows, 60,000 reports" in out
    learned = np.array(weights(tmp_path / "learned" / "home.csv"))
    assert learned / learned.sum() == pytest.approx([0, 0, 0, 0, 0.7, 0.2, 0.1, 0], abs=0.03)
    first = (tmp_path / "learned" / "home.csv").read_bytes()
    assert uldp("background", tmp_path / "out", "--to", tmp_path / "learned")[1] == out
    assert (tmp_path / "learned" / "home.csv").read_bytes() == first

    # The spec reads the strength that the command has said, and keeps its device half.
    tags = [spec.tags[0].model_dump() | {"background": "learned/home.csv", "zones": "zones.csv"}]
    now = CollectionSpec.parse(spec.model_dump(mode="json", exclude_none=True) | {"tags": tags}, base=tmp_path)
    assert now.device_digest == spec.device_digest
    assert now.variables[""].strength[0] == learned.sum() / 4
    assert f"strength {now.variables[''].strength[0]:,.0f}" in out


def test_windows_that_overlap_are_not_counted_twice(uldp: Run, tmp_path: Path) -> None:
    spec = results(tmp_path)
    half = build.pane(np.ones(8 + 4, dtype=np.int64), start=build.START + HOUR // 2, device_digest=spec.device_digest)
    write(tmp_path / "out", half)
    _, out, _ = uldp("background", tmp_path / "out", "--to", tmp_path / "learned")
    assert "3 windows, 60,000 reports" in out


def test_windows_since_a_time_are_those_that_end_after_it(uldp: Run, tmp_path: Path) -> None:
    results(tmp_path)
    options = ("--to", tmp_path / "learned", "--since")
    _, out, _ = uldp("background", tmp_path / "out", *options, "2026-01-01T10:00:00Z")
    assert "2 windows, 40,000 reports" in out
    code, _, err = uldp("background", tmp_path / "out", *options, "2026-02-01T00:00:00Z")
    assert code == 1
    assert "counts a report since then; choose an earlier --since" in err


def test_a_background_without_strength_gives_one_without(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "half.csv").write_text("4,0.5\n5,0.5\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("4,a\n5,a\n6,c\n7,d\n", encoding="utf-8")
    results(tmp_path, tags=[{"name": "home", "background": "half.csv", "zones": "two.csv", "zone_epsilon": 1.0}])
    code, out, _ = uldp("background", tmp_path / "out", "--to", tmp_path / "learned")
    assert code == 0
    assert "strength unknown" in out
    learned = weights(tmp_path / "learned" / "home.csv")
    assert sum(learned) == pytest.approx(0.5)
    assert learned[4] == learned[5]


def test_results_without_answers_are_refused(uldp: Run, tmp_path: Path) -> None:
    results(tmp_path, hours=0)
    code, _, err = uldp("background", tmp_path / "out", "--to", tmp_path / "learned")
    assert code == 1
    assert "no window of c version 1 counts a report" in err
    code, _, err = uldp("background", tmp_path / "out", "--collection", "d", "--to", tmp_path / "learned")
    assert (code, "the results have no collection 'd'" in err) == (1, True)
    keep_specs(str(tmp_path / "plain"), [build.spec(sensitive=[0], tags=[{"name": "home"}])])
    code, _, err = uldp("background", tmp_path / "plain", "--to", tmp_path / "learned")
    assert code == 1
    assert "no tag has zone_epsilon" in err
    assert not (tmp_path / "learned").exists()


@pytest.mark.parametrize("total", [1, 7, 100, 12_345])
def test_whole_weights_have_their_sum_and_are_near(total: int) -> None:
    distribution = np.random.default_rng(total).dirichlet(np.ones(50))
    found = whole_weights(distribution, total)
    assert found.sum() == total
    assert np.abs(found - distribution * total).max() < 1
