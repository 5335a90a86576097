"""What a report takes in each client, and whether its time tells one value from another.

    python -m benchmarks.clients --calls 10000

Needs the clients as `make clients` builds them. For each family a device of each client perturbs the first and the
last of 17 values in turn. The table has the median nanoseconds of a payload, and the area under the curve (AUC) of a
guess of the value from the time alone, as ``benchmarks.timing`` has it for the device in Python. A guess by chance has
.5; of 10,000 calls, it stays below .52 in all but one of 1,000 runs.
"""

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import yaml

from benchmarks.options import read_options
from benchmarks.timing import area
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_table
from uldp.schemas.specs.collection import CollectionSpec

FOLDER = Path(__file__).parents[1] / "clients"
CALLS = 10_000
SIZE = 17
FAMILIES = ("urr", "oue", "ss", "olh", "hrr", "linear-olh", "pgr")
#: A guess by chance has a smaller AUC of ``CALLS`` calls in all but one of 1,000 runs.
BY_CHANCE = 0.52


def commands(program: str) -> dict[str, tuple[str, ...]]:
    """Return the command of a program of the tests of each client that reads tables as JSON."""
    target = FOLDER / "kotlin" / "target"
    libraries = (target / "classpath").read_text(encoding="utf-8") if target.exists() else ""
    path = f"{target}/test-classes:{target}/classes:{libraries}"
    return {
        "typescript": ("node", str(FOLDER / "typescript" / "test" / f"{program}.mjs")),
        "kotlin": ("java", "-XX:+UseSerialGC", "-cp", path, f"uldp.{program.title()}"),
    }


def compiled(folder: Path, program: str, *options: str) -> str:
    """Compile a program of the tests of the client in C, which may include headers of a folder, without a warning."""
    warnings = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-Wno-unused-variable"]
    paths = ["-I", str(FOLDER / "c"), "-I", str(folder), str(FOLDER / "c" / "test" / f"{program}.c")]
    command = ["cc", "-std=c11", *warnings, *options, *paths, "-o", str(folder / program)]
    subprocess.run(command, check=True)
    return str(folder / program)


def timed(
    command: Sequence[str], calls: int, lines: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the nanoseconds and the number of draws of each report, of two devices in turn."""
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
    nanoseconds, draws = np.array(done.stdout.split(), dtype=np.int64).reshape(calls, 2).T
    return nanoseconds, draws


def spec_of(family: str, folder: Path) -> CollectionSpec:
    """Return the spec of a family over 17 values, of which URR protects all but the last."""
    keys = {"collection": "c", "version": 1, "window": {"size": "1h"}, "domain": {"size": SIZE}}
    keys["mechanism"] = {"name": family, "epsilon": 1.0}
    if family == "urr":
        keys["sensitive"] = [*range(SIZE - 1)]
    path = folder / "spec.yaml"
    path.write_text(yaml.safe_dump(keys), encoding="utf-8")
    return CollectionSpec.load(path)


def measure(family: str, calls: int = CALLS) -> Mapping[str, tuple[float, float]]:
    """Return the median nanoseconds and the AUC of each client."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = device_table(spec_of(family, folder))
        (folder / "table.json").write_text(json.dumps(table), encoding="utf-8")
        (folder / "table.h").write_text("\n".join(c_table(table, "c")) + "\n", encoding="utf-8")
        c = [compiled(folder, "times", "-O2", f"-DCALLS={calls}", "-DNAME=c")]
        runs: dict[str, tuple[list[str], list[str]]] = {
            "c": (c, [f"1 1 {value} -1 {value} 0" for value in (0, SIZE - 1)])
        }
        for client, command in commands("times").items():
            lines = [json.dumps({"value": value}) for value in (0, SIZE - 1)]
            runs[client] = ([*command, str(folder / "table.json"), str(calls)], lines)
        for client, (program, lines) in runs.items():
            nanoseconds, _ = timed(program, calls, lines)
            found[client] = (float(np.median(nanoseconds)), area(nanoseconds.astype(float), np.arange(calls) % 2 == 1))
    return found


def main() -> None:
    """Print a table with a row for each family."""
    calls = read_options(__doc__, calls=CALLS).calls
    clients = ("c", *commands("times"))
    print(f"{'':12s}" + "".join(f"{client:>12s} ns  AUC" for client in clients))
    for family in FAMILIES:
        found = measure(family, calls)
        print(f"{family:12s}" + "".join(f"{found[client][0]:15,.0f} {found[client][1]:.3f}" for client in clients))


if __name__ == "__main__":
    main()
