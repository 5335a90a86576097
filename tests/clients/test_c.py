"""The client in C compiles as C, C++ and Objective-C, sends what its table says, and leaves no memory of its own."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.clients import FOLDER, compiled
from tests import build
from tests.clients.c_vectors import header, lines
from tests.clients.fleets import HELD, uldp
from tests.clients.tables import cases
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_name, c_table

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


#: Collections whose names are words of C, C++ or Objective-C, macros, or names of the header.
NAMES = ("int", "for", "class", "new", "bool", "linux", "self", "uldp", "main", "7days", "a-b")
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror"]
README = (FOLDER / "c" / "README.md").read_text(encoding="utf-8")
PROGRAM, POST = re.findall(r"^```c\n(.+?)^```$", README, re.DOTALL | re.MULTILINE)


def has_objective_c(compiler: str) -> bool:
    back_end = subprocess.run([compiler, "-print-prog-name=cc1obj"], capture_output=True, text=True, check=True)
    return compiler == "clang" or shutil.which(back_end.stdout.strip()) is not None


def ways() -> Iterator[list[str]]:
    """Yield the commands that compile a program of C; each machine has one at least."""
    for compiler in filter(shutil.which, ("cc", "gcc", "clang")):
        yield from ([compiler, "-x", "c", f"-std={standard}"] for standard in ("gnu11", "gnu17", "gnu2x"))
        yield [compiler, "-x", "c", "-std=c11", "-D_DEFAULT_SOURCE"]
        if compiler != "cc" and has_objective_c(compiler):
            yield [compiler, "-x", "objective-c", "-std=gnu11"]
    for compiler in filter(shutil.which, ("g++", "clang++")):
        yield from ([compiler, "-x", "c++", f"-std={standard}"] for standard in ("c++17", "c++20"))


@pytest.mark.parametrize("way", [*ways()], ids=" ".join)
def test_the_program_of_the_readme_and_all_names_compile(way: list[str], tmp_path: Path) -> None:
    (tmp_path / "places.h").write_text(uldp("device-table", FOLDER / "places.yaml", "--c"))
    sizes = []
    for collection in NAMES:
        name = c_name(collection)
        header = "\n".join(c_table(device_table(build.spec(collection=collection)), name))
        (tmp_path / f"{name}.h").write_text(header + "\n")
        sizes.append(f"sizeof {name}_message_bytes + {name}_table.bytes_count + {name}_work.bytes_count")
    includes = "".join(f'#include "{c_name(name)}.h"\n' for name in (*NAMES, *NAMES))
    used = f"size_t all_names(void);\nsize_t all_names(void) {{ return {' + '.join(sizes)}; }}\n"
    queue = '#include "uldp_queue.h"\n'
    curl = f"#include <curl/curl.h>\n{POST}uldp_post posting(void);\nuldp_post posting(void) {{ return post; }}\n"
    has_curl = subprocess.run(["cc", "-E", "-include", "curl/curl.h", "-x", "c", "/dev/null"], capture_output=True)
    (tmp_path / "all.c").write_text(includes + PROGRAM + queue + used + (curl if has_curl.returncode == 0 else ""))
    command = [*way, *WARNINGS, "-O1", "-I", str(tmp_path), "-I", str(FOLDER / "c"), "-c", "all.c", "-o", "all.o"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
