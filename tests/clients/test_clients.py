"""Each client in another language sends what its table says: by the vectors, by ``verify``, and as a fleet."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests import build
from tests.clients.commands import CLIENTS, Client, run
from tests.clients.tables import cases, write
from tests.pipelines.command import ULDP
from tests.pipelines.intake.posting import Collecting
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.table import device_table
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

DEVICES = 20_000
each_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)

#: A spec of each kind of payload, and what all devices hold.
HELD: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "urr": (
        {"domain": {"labels": ["a", "b", "c"]}, "sensitive": ["a"], "tags": [{"name": "home"}]}
        | {"mechanism": {"name": "urr", "epsilon": 1.0}, "estimator": "empirical"},
        {"value": "b", "hidden": {"b": "home"}},
        ["--value", "b", "--tag", "home"],
    ),
    "oue": (
        {"domain": {"size": 9}, "mechanism": {"name": "oue", "epsilon": 1.0}},
        {"value": 3},
        ["--value", "3"],
    ),
    "olh": (
        {"domain": {"size": 9}, "mechanism": {"name": "olh", "epsilon": 1.0}},
        {"value": 3},
        ["--value", "3"],
    ),
    "block": (
        {"domain": {"number": {"low": 0, "high": 24}}, "mechanism": {"name": "block", "epsilon": 1.0, "bins": 16}},
        {"value": 7.3},
        ["--value", "7.3"],
    ),
    "set-ss": (
        {"domain": {"set": {"of": {"size": 9}, "at_most": 3}}, "mechanism": {"name": "set-ss", "epsilon": 1.0}},
        {"value": [2, 5]},
        ["--value", "2;5"],
    ),
    "set-ss of pairs": (
        {
            "domain": {"pairs": {"of": {"labels": ["a", "b", "c"]}, "at_most": 2, "low": 0, "high": 8}},
            "mechanism": {"name": "set-ss", "epsilon": 1.0},
        },
        {"value": [["a", 8], ["c", 0]]},
        ["--value", "a=8;c=0"],
    ),
    "record": (
        {
            "domain": {"record": {"app": {"size": 4}, "hours": {"number": {"low": 0, "high": 24}}}},
            "mechanism": {
                "name": "sample-one",
                "epsilon": 1.0,
                "of": {"app": {"name": "rr"}, "hours": {"name": "duchi"}},
            },
        },
        {"value": {"app": 2, "hours": 7.3}},
        ["--value", "app=2", "--value", "hours=7.3"],
    ),
}


def written(folder: Path, keys: dict[str, Any]) -> tuple[Path, Path]:
    """Write a spec and its table, and return their paths."""
    spec, table = folder / "spec.yaml", folder / "table.json"
    spec.write_text(yaml.safe_dump(build.MINIMAL | {"limits": {"min_reports": 1}} | keys))
    table.write_text(json.dumps(device_table(CollectionSpec.load(spec))))
    return spec, table


def uldp(*arguments: str | Path) -> str:
    done = subprocess.run([ULDP, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each_client
def test_a_client_follows_all_vectors(client: Client, tmp_path: Path) -> None:
    write(tmp_path / "cases.jsonl")
    found = json.loads(run(client.vectors, tmp_path / "cases.jsonl"))
    assert found["differ"] == []
    assert found["cases"] == len([*cases()])


@each_client
@pytest.mark.parametrize("name", HELD)
def test_reports_follow_the_mechanism_and_keep_its_promise(client: Client, name: str, tmp_path: Path) -> None:
    keys, holding, arguments = HELD[name]
    spec, table = written(tmp_path, keys)
    messages = run(client.fleet, table, lines=[holding] * DEVICES).split()
    stream = LocalStream.create(tmp_path / "stream")
    stream.append([Message(bytes.fromhex(each), time.time_ns() // 1_000_000) for each in messages])
    stream.close()
    assert "p-value of all tests" in uldp("verify", "--spec", spec, *arguments, tmp_path / "stream")


@each_client
def test_a_fleet_is_counted_at_the_truth(client: Client, tmp_path: Path) -> None:
    spec, table = written(tmp_path, HELD["urr"][0])
    held = np.random.default_rng(5).choice(3, DEVICES, p=[0.2, 0.5, 0.3])
    # Half of those who hold b hide it.
    holdings = [{"value": "abc"[z], "hidden": {"b": "home"} if z == 1 and i % 2 else {}} for i, z in enumerate(held)]
    with Collecting(spec, tmp_path / "posted") as collecting:
        taken = run(client.fleet, table, f"http://127.0.0.1:{collecting.port}", lines=holdings)
    assert int(taken) == DEVICES
    uldp("backfill", "--spec", spec, "--from", tmp_path / "posted", "--to", tmp_path / "results")
    windows = [json.loads(line) for line in uldp("show", "--json", tmp_path / "results").splitlines()]
    counts = np.sum([window["counts"] for window in windows], axis=0)
    symbols = [3 if holding["hidden"] else z for z, holding in zip(held, holdings, strict=True)]
    law = build_protocol(CollectionSpec.load(spec)).mechanism.law(np.bincount(symbols, minlength=4) / DEVICES)
    assert law is not None
    # Pearson's statistic of 4 payloads has 3 degrees of freedom at most, and is 30.7 or more in one of a million runs.
    assert counts.sum() == DEVICES
    assert ((counts - DEVICES * law) ** 2 / (DEVICES * law)).sum() < 30.7
