"""The headers in C compile without a warning, as C, C++ and Objective-C, by each compiler of this machine."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clients import FOLDER
from tests import build
from tests.clients.fleets import uldp
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_name, c_table

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
