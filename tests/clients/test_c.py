"""The client in C sends what its table says, and reads and writes no memory that is not its own."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients import compiled
from tests import build
from tests.clients.c_vectors import header, lines
from tests.clients.fleets import HELD
from tests.clients.tables import cases
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_table

#: Errors of memory and of arithmetic end the program.
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]


def run(program: str, text: str = "") -> str:
    done = subprocess.run([program], input=text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tables of all vectors."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "tables.h").write_text("\n".join(header([*cases()])) + "\n")
    return folder


def test_the_client_follows_all_vectors(tables: Path) -> None:
    all_cases = [*cases()]
    found = run(compiled(tables, "vectors", *SANITIZED), "\n".join(lines(all_cases)))
    reports = sum(len(device["reports"]) for case in all_cases for device in case["devices"])
    assert found == f"{reports} reports, 0 differ\n"


def test_no_value_and_no_draw_makes_the_client_leave_its_memory(tables: Path) -> None:
    assert int(run(compiled(tables, "fuzz", *SANITIZED, "-DRUNS=150"))) > 3_000


def test_nor_do_thrice_as_many(tables: Path) -> None:
    # Its runs take most of the time, so .ci/run, which chooses tests by their names, has the one above alone.
    assert int(run(compiled(tables, "fuzz", *SANITIZED, "-DRUNS=500"))) > 10_000


#: A table for each kind of mistake.
REFUSED: dict[str, dict[str, Any]] = {
    "places": HELD["urr"][0]
    | {"domain": {"labels": ["park", "shop", "clinic", "flat", "office"]}, "sensitive": ["clinic"]}
    | {"budget": {"epsilon": 4, "every": "30d"}},
    "record": HELD["record"][0],
    "vote": {"domain": {"ranking": {"of": ["a", "b", "c"]}}, "mechanism": {"name": "pairs", "epsilon": 1.0}},
    "items": {"domain": {"set": {"of": {"size": 5}, "at_most": 3}}, "mechanism": {"name": "set-ss", "epsilon": 1.0}},
    "pairs": HELD["set-ss of pairs"][0],
    "texts": {
        "domain": {"set": {"of": {"strings": {"longest": 12}}, "at_most": 2}},
        "candidates": ["a"],
        "mechanism": {"name": "set-olh", "epsilon": 1.0},
    },
    "text": {
        "domain": {"strings": {"longest": 12}},
        "candidates": ["a"],
        "mechanism": {"name": "cohort-olh", "epsilon": 1.0},
    },
    "levels": {
        "domain": {"size": 5},
        "mechanism": {
            "name": "levels",
            "of": {"name": "rr"},
            "levels": {"strict": {"epsilon": 0.5, "share": 0.3}, "open": {"epsilon": 1.0, "share": 0.7}},
        },
    },
    "sliced": {"domain": {"size": 5}, "by": {"os": ["a", "b", "c"]}, "mechanism": {"name": "rr", "epsilon": 1.0}},
    "kept": {"domain": {"size": 5}, "mechanism": {"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0}},
    "many": {"domain": {"size": 99}, "mechanism": {"name": "oue", "epsilon": 1.0}},
}


def test_the_client_refuses_what_a_program_gets_wrong(tmp_path: Path) -> None:
    tables = {name: device_table(build.spec(**keys)) for name, keys in REFUSED.items()}
    tables["zones"] = next(case["table"] for case in cases() if case["table"]["encoding"]["form"] == "zones")
    lines = [line for name, table in tables.items() for line in c_table(table, name)]
    (tmp_path / "refused.h").write_text("\n".join(lines) + "\n")
    assert run(compiled(tmp_path, "refuses", *SANITIZED)) == "613 checks, 0 wrong\n"
