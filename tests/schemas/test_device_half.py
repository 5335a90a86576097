"""The half of a spec that devices know, and its digest."""

from pathlib import Path
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.devices.table import device_table
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.device_half import changed_key

VALUES: dict[str, Any] = {
    "domain": {"labels": ["a", "b", "c"]},
    "sensitive": ["a"],
    "mechanism": {"name": "urap", "epsilon": 1.0, "theta": 0.6},
    "tags": [{"name": "home"}, {"name": "work"}],
}
NUMBER: dict[str, Any] = {
    "domain": {"number": {"low": 0, "high": 24}},
    "mechanism": {"name": "block", "epsilon": 1.0, "bins": 256},
}
APP: dict[str, Any] = {"labels": ["a", "b"], "sensitive": ["a"], "tags": [{"name": "home"}]}
HOURS: dict[str, Any] = {"number": {"low": 0, "high": 24}}


def record(
    app: Any = (), hours: Any = (), of: Any = (), *, epsilon: float = 1.0, name: str = "hours"
) -> dict[str, Any]:
    """A record of an app and a number, with other keys of its attributes and of their mechanisms."""
    return {
        "domain": {"record": {"app": APP | dict(app), name: HOURS | dict(hours)}},
        "mechanism": {
            "name": "sample-one",
            "epsilon": epsilon,
            "of": {"app": {"name": "urr"}, name: {"name": "duchi"}} | dict(of),
        },
    }


def shares(app: float, hours: float) -> dict[str, Any]:
    return {"app": {"name": "urr", "share": app}, "hours": {"name": "duchi", "share": hours}}


@pytest.mark.parametrize(
    "keys",
    [
        {"estimator": ["empirical", "norm-sub"]},
        {"limits": {"min_reports": 1000, "max_age": "2h", "max_clock_skew": "1m", "max_rejected_ratio": 0.1}},
        {"retired": True},
        {"window": {"size": "2h", "early_every": "30s", "allowed_lateness": "1d"}},
        {"version": 2},
        {"collection": "d"},
    ],
    ids=lambda keys: next(iter(keys)),
)
@pytest.mark.parametrize("given", [VALUES, record()], ids=["values", "record"])
def test_what_devices_need_not_know_leaves_the_device_half(given: dict[str, Any], keys: dict[str, Any]) -> None:
    assert build.spec(**given | keys).device_digest == build.spec(**given).device_digest


def test_background_leaves_the_device_half(tmp_path: Path) -> None:
    (tmp_path / "home.csv").write_text("b,1\n")
    tags = [{"name": "home", "background": "home.csv"}, {"name": "work"}]
    known = CollectionSpec.parse(build.MINIMAL | VALUES | {"tags": tags}, base=tmp_path)
    assert known.device_digest == build.spec(**VALUES).device_digest


GRIDS = [
    ({}, {"domain": {"size": 5, "columns": 5}}),
    (VALUES, VALUES | {"domain": {"labels": ["a", "b", "c"], "columns": 3}}),
    (record(), record(app={"columns": 2})),
]


@pytest.mark.parametrize(("given", "on_a_grid"), GRIDS, ids=["size", "labels", "record"])
def test_the_columns_of_a_grid_are_for_readers_alone(given: dict[str, Any], on_a_grid: dict[str, Any]) -> None:
    before, now = build.spec(**given), build.spec(**on_a_grid)
    assert now.device_half == before.device_half
    assert device_table(now) == device_table(before)


@pytest.mark.parametrize(
    ("given", "same"),
    [
        ({"sensitive": [0, 1, 2, 3, 4]}, {"sensitive": "all"}),
        ({"sensitive": [3, 1]}, {"sensitive": [1, 3]}),
        (VALUES, VALUES | {"sensitive": [0]}),
        ({"mechanism": {"name": "olh", "epsilon": 1}}, {"mechanism": {"name": "olh", "epsilon": 1.0, "buckets": 4}}),
        (record(), record({"sensitive": [0]}, of=shares(0.5, 0.5))),
    ],
)
def test_what_means_the_same_to_devices_is_one_device_half(given: dict[str, Any], same: dict[str, Any]) -> None:
    assert build.spec(**given).device_digest == build.spec(**same).device_digest


def test_labels_of_a_file_are_labels(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("value\na\nb\nc\n")
    from_file = build.MINIMAL | VALUES | {"domain": {"labels_file": "labels.csv"}}
    assert CollectionSpec.parse(from_file, base=tmp_path).device_digest == build.spec(**VALUES).device_digest


CHANGES = [
    ({}, {"domain": {"size": 6}}, "domain.size"),
    (VALUES, VALUES | {"domain": {"labels": ["a", "c", "b"]}}, "domain.labels"),
    (VALUES, VALUES | {"sensitive": ["a", "b"]}, "sensitive"),
    (VALUES, VALUES | {"tags": [{"name": "home"}]}, "tags"),
    (VALUES, VALUES | {"mechanism": {"name": "urap", "epsilon": 1.0}}, "mechanism.theta"),
    (VALUES, VALUES | {"mechanism": {"name": "urap", "epsilon": 2.0, "theta": 0.6}}, "mechanism.epsilon"),
    (VALUES, VALUES | {"mechanism": VALUES["mechanism"] | {"lasting_epsilon": 2.0}}, "mechanism.lasting_epsilon"),
    ({}, {"mechanism": {"name": "uoue", "epsilon": 1.0}}, "mechanism.name"),
    (
        {"mechanism": {"name": "olh", "epsilon": 1}},
        {"mechanism": {"name": "olh", "epsilon": 1, "buckets": 8}},
        "mechanism.buckets",
    ),
    (NUMBER, NUMBER | {"domain": {"number": {"low": 1, "high": 24}}}, "domain.number.low"),
    (NUMBER, NUMBER | {"mechanism": {"name": "block", "epsilon": 1.0}}, "mechanism.bins"),
    (
        NUMBER,
        NUMBER | {"mechanism": {"name": "block", "epsilon": 1.0, "bins": 256, "width": "piecewise"}},
        "mechanism.width",
    ),
    (record(), record(name="minutes"), "domain.record"),
    (record(), record(epsilon=2.0), "mechanism.epsilon"),
    (record(), record(app={"labels": ["a", "c"]}), "domain.record.app.labels"),
    (record(), record(app={"sensitive": ["b"]}), "domain.record.app.sensitive"),
    (record(), record({"tags": [], "sensitive": "all"}, of={"app": {"name": "oue"}}), "domain.record.app.sensitive"),
    (record(), record(of={"hours": {"name": "block"}}), "mechanism.of.hours.name"),
    (record(), record(of=shares(0.6, 0.4)), "mechanism.of.app.share"),
]


@pytest.mark.parametrize(("given", "changed", "key"), CHANGES, ids=[key for _, _, key in CHANGES])
def test_each_change_that_devices_must_know_is_another_device_half(
    given: dict[str, Any], changed: dict[str, Any], key: str
) -> None:
    before, now = build.spec(**given), build.spec(**changed)
    assert before.device_digest != now.device_digest
    assert changed_key(before.device_half, now.device_half) == key


def test_the_order_of_attributes_is_of_the_device_half_and_that_of_their_mechanisms_is_not() -> None:
    given = record()
    turned = given | {"domain": {"record": dict(reversed(given["domain"]["record"].items()))}}
    assert build.spec(**turned).device_digest != build.spec(**given).device_digest
    mechanism = given["mechanism"] | {"of": dict(reversed(given["mechanism"]["of"].items()))}
    assert build.spec(**given | {"mechanism": mechanism}).device_digest == build.spec(**given).device_digest


def test_a_digest_stays_from_version_to_version() -> None:
    """It is in files of statistics, so another one would refuse to add these."""
    assert build.spec().device_digest == "7f32a093a08caa39"
    assert build.spec(**record()).device_digest == "58535416bff0c749"
    assert changed_key(build.spec().device_half, build.spec().device_half) is None
