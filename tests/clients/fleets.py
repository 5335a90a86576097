"""Fleets of devices of clients in other languages: their specs, and what a collector makes of their reports."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.clients import compiled
from tests import build
from tests.clients.c_vectors import held_line
from tests.clients.commands import run
from tests.pipelines.command import ULDP
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.table import device_table
from uldp.schemas.arrays import Symbols
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import LocalStream

DEVICES = 20_000

#: A spec of each kind of payload, and what all devices hold.
HELD: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "urr": (
        {"domain": {"labels": ["a", "b", "c"]}, "sensitive": ["a"], "tags": [{"name": "home"}]}
        | {"mechanism": {"name": "urr", "epsilon": 1.0}, "estimator": "empirical"},
        {"value": "b", "hidden": {"b": "home"}},
        ["--value", "b", "--tag", "home"],
    ),
    "oue": ({"domain": {"size": 9}, "mechanism": {"name": "oue", "epsilon": 1.0}}, {"value": 3}, ["--value", "3"]),
    "olh": ({"domain": {"size": 9}, "mechanism": {"name": "olh", "epsilon": 1.0}}, {"value": 3}, ["--value", "3"]),
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


def messages(client: str, folder: Path, holdings: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """Return what devices of a client send, by the spec and the table that ``written`` wrote."""
    if client == "c":
        (folder / "table.h").write_text(uldp("device-table", folder / "spec.yaml", "--c"))
        columns = json.loads((folder / "table.json").read_text())["columns"]
        program, text = (
            compiled(folder, "fleet", "-O2", "-DNAME=c"),
            "\n".join(held_line(columns, of) for of in holdings),
        )
        said = subprocess.run([program], input=text, capture_output=True, text=True, timeout=300, check=True).stdout
    else:
        said = run(client, "fleet", folder / "table.json", lines=holdings)
    return [bytes.fromhex(each) for each in said.split()]


def uldp(*arguments: str | Path) -> str:
    done = subprocess.run([ULDP, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_counted_at_the_truth(spec: Path, folder: Path, held: Symbols, hidden: Sequence[bool]) -> None:
    """Follow ``folder/posted``, whose collector has ended.

    The counts of urr must follow the law of what 20,000 devices held or hid.
    """
    LocalStream.open(folder / "posted").close()
    uldp("stream", "--spec", spec, "--from", folder / "posted", "--to", folder / "results")
    windows = [json.loads(line) for line in uldp("show", "--json", folder / "results").splitlines()]
    counts = np.sum([window["counts"] for window in windows], axis=0)
    symbols = np.where(hidden, 3, held)
    law = build_protocol(CollectionSpec.load(spec)).mechanism.law(np.bincount(symbols, minlength=4) / DEVICES)
    assert law is not None
    # Pearson's statistic of 4 payloads has 3 degrees of freedom at most, and is 30.7 or more in one of a million runs.
    assert counts.sum() == DEVICES
    assert ((counts - DEVICES * law) ** 2 / (DEVICES * law)).sum() < 30.7
