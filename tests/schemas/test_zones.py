"""Zones in a spec: which files are taken, which are refused and how, and that they are part of the device half."""

from pathlib import Path
from typing import Any

import pytest

from tests import build
from tests.families import ANSWER_ZONES
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.device_half import changed_key
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.specs.zones import MOST_ZONES, Zones, zones_text

ONE_ZONE = "there must be 2 to 1,024 zones, got 1; divide the values otherwise, or remove zones from the tag"
FILE = "value,zone\n4,south\n0,north\n1,south\n"


def parse(folder: Path, zones: str = FILE, tag: dict[str, Any] | None = None, **keys: Any) -> CollectionSpec:
    """A spec of five values whose tag has these zones."""
    (folder / "zones.csv").write_text(zones, encoding="utf-8")
    tags = [{"name": "home", "zones": "zones.csv"} | (tag or {})]
    return CollectionSpec.parse(build.MINIMAL | {"sensitive": [0], "tags": tags} | keys, base=folder, source="s")


def zones_of(spec: CollectionSpec) -> Zones:
    (zones,) = spec.variables[""].zones
    assert zones is not None
    return zones


def test_zones_are_in_the_order_of_the_file_and_rest_is_the_last(tmp_path: Path) -> None:
    zones = zones_of(parse(tmp_path))
    assert zones.labels == ("south", "north", "rest")
    assert zones.of_value.tolist() == [1, 0, 2, 2, 0]


@pytest.mark.parametrize("file", [FILE, "0,a\n1,b\n2,a\n3,b\n4,b\n"])
def test_zones_that_are_written_are_read_again(file: str, tmp_path: Path) -> None:
    spec = parse(tmp_path, file)
    again = zones_of(parse(tmp_path, zones_text(zones_of(spec), spec.labels)))
    assert (again.labels, again.of_value.tolist()) == (zones_of(spec).labels, zones_of(spec).of_value.tolist())


@pytest.mark.parametrize(
    ("zones", "text"),
    [
        ("0,a\n5,b\n", "line 2: '5,b': 5 is outside of the domain 0 to 4"),
        ("0,a\n0,b\n", "line 2: '0,b': the value occurs twice; remove one row"),
        ("0\n", "line 1: '0': the row has 1 fields; write value,zone"),
        ("0,a b\n", "line 1: '0,a b': a zone must be 1 to 64 of the characters A-Z, a-z, 0-9, _ and -"),
        ("0,rest\n", "line 1: '0,rest': the zone rest is of the values that the file does not name; remove the row"),
        ("0,a\n1,a\n2,a\n3,a\n4,a\n", ONE_ZONE),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(zones: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        parse(tmp_path, zones)
    assert str(caught.value) == f"s: tags.0.zones: {tmp_path / 'zones.csv'}: {text}"


def test_a_missing_file_and_too_many_zones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"tags\.0\.zones: .*missing\.csv: No such file"):
        parse(tmp_path, tag={"zones": "missing.csv"})
    many = "".join(f"{value},z{value}\n" for value in range(MOST_ZONES))
    with pytest.raises(SpecError, match="got 1,025"):
        parse(tmp_path, many, domain={"size": 2000})


def test_zones_of_many_values_need_a_budget_of_their_own(tmp_path: Path) -> None:
    many = "".join(f"{value},z{value}\n" for value in range(MOST_ZONES - 1))
    large = {"domain": {"size": 20_000}}
    with pytest.raises(
        SpecError, match=r"tags\.0\.zones: 1,024 zones of 20,000 values have a table of more than 16,777"
    ):
        parse(tmp_path, many, **large)
    assert len(zones_of(parse(tmp_path, many, {"zone_epsilon": 0.5}, **large)).labels) == MOST_ZONES


@pytest.mark.parametrize(
    ("tag", "keys", "text"),
    [
        ({"zone_epsilon": 0}, {}, "tags.0.zone_epsilon: must be more than 0 (got 0)"),
        ({"zone_epsilon": 1.5}, {}, "tags.0.zone_epsilon: must be at most epsilon, the budget of the report (1)"),
        (
            {"zone_epsilon": 1.0},
            {"mechanism": {"name": "urap", "epsilon": 1.0}},
            f"tags.0.zone_epsilon: urap takes zones without a budget of their own; choose {ANSWER_ZONES}, or remove it",
        ),
        (
            {"zone_epsilon": 1.0},
            {"mechanism": {"name": "urr", "epsilon": 1.0, "lasting_epsilon": 2.0}},
            "tags.0.zone_epsilon: a device keeps no answer about a zone; remove it, or mechanism.lasting_epsilon",
        ),
        (
            {"zone_epsilon": 1.0, "zones": None},
            {},
            "tags.0: zone_epsilon is the budget of an answer about zones; add zones, or remove zone_epsilon",
        ),
    ],
)
def test_a_budget_that_does_not_fit_is_refused(
    tag: dict[str, Any], keys: dict[str, Any], text: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as caught:
        parse(tmp_path, tag=tag, **keys)
    assert str(caught.value) == f"s: {text}"


@pytest.mark.parametrize(
    ("zones", "tag", "key"),
    [
        ("4,south\n0,north\n", {}, "tags.home.zones"),
        ("0,north\n4,south\n1,south\n", {}, "tags.home.zones"),
        (FILE, {"zone_epsilon": 0.5}, "tags.home.zone_epsilon"),
        (FILE, {"zones": None}, "tags.home.zones"),
    ],
    ids=["another division", "another order", "a budget", "no zones"],
)
def test_zones_change_the_device_half(zones: str, tag: dict[str, Any], key: str, tmp_path: Path) -> None:
    before, now = parse(tmp_path), parse(tmp_path, zones, tag)
    assert changed_key(before.device_half, now.device_half) == key
    assert before.device_digest != now.device_digest


def test_other_names_of_the_same_zones_are_the_same_device_half(tmp_path: Path) -> None:
    assert parse(tmp_path).device_digest == parse(tmp_path, "4,a\n0,b\n1,a\n").device_digest
