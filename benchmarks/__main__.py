"""All benchmarks: one table and one figure.

python -m benchmarks            writes build/bench/bench.md and build/bench/bench.png
python -m benchmarks --quick    the same on small inputs, to see that it runs
python -m benchmarks --guard    no table: fails if a ratio of rates is below its margin
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import (
    commands,
    early_panes,
    estimators,
    ids,
    kernels,
    latency,
    merging,
    panes,
    panes_in_stream,
    peers,
    rejects,
    restart,
    scaling,
    sliding,
    state,
    strata,
    throughput,
)
from benchmarks.figure import draw
from benchmarks.guard import guard
from benchmarks.rows import Row, markdown


def kernel_rows(*, quick: bool = False) -> Iterator[Row]:
    """Measure the kernel that counts bits, alone; ``quick`` takes the first case."""
    rng = np.random.default_rng(3)
    for size, n in kernels.CASES[: 1 if quick else None]:
        millions = kernels.measure(size, n, rng)
        remark = f"{millions['count_bits'] / millions['unpacked']:.1f} times as fast as unpacked and summed"
        yield Row("kernels", f"count_bits, {size:,} bits", n, n / (1e6 * millions["count_bits"]), remark=remark)


PARTS = {
    "throughput": throughput.rows,
    "kernels": kernel_rows,
    "peers": peers.rows,
    "scaling": scaling.rows,
    "sliding": sliding.rows,
    "state": state.rows,
    "ids": ids.rows,
    "merging": merging.rows,
    "restart": restart.rows,
    "rejects": rejects.rows,
    "estimators": estimators.rows,
    "latency": latency.rows,
    "commands": commands.rows,
    "strata": strata.rows,
    "panes": panes.rows,
    "panes in a stream": panes_in_stream.rows,
    "early panes": early_panes.rows,
}


def run(out: Path, *, quick: bool) -> None:
    """Run the parts, each after the other, and write ``bench.md`` and ``bench.png`` into the folder ``out``."""
    rows: list[Row] = []
    began = time.monotonic()
    for name, part_rows in PARTS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        for row in part_rows(quick=quick):
            rows.append(row)
            rate = row.remark if row.rate is None else f"{row.rate:,.0f} per second"
            print(f"{time.monotonic() - began:5.0f} s  {row.label} ({row.n:,}): {rate}", file=sys.stderr, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.md").write_text("\n".join(markdown(rows)) + "\n", encoding="utf-8")
    draw(rows, out / "bench.png")
    print(f"{out / 'bench.md'} and bench.png: {len(rows)} rows in {time.monotonic() - began:.0f} s")


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small inputs: what it measures means little")
    parser.add_argument("--guard", action="store_true", help="fail if a ratio of rates is below its margin")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder of the table and the figure")
    arguments = parser.parse_args()
    if arguments.guard:
        judged = list(guard())
        for _, line in judged:
            print(line)
        return 0 if all(kept for kept, _ in judged) else 1
    run(arguments.out, quick=arguments.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
