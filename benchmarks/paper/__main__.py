"""The results of the papers, reproduced: tables and figures, with fixed seeds.

    python -m benchmarks.paper                       all of it; writes build/paper/*.md and *.png
    python -m benchmarks.paper --only 5 table1       some of it
    python -m benchmarks.paper --quick               two points of each curve, to see that it runs

ULDP paper (Murakami & Kawamoto, USENIX Security 2019): Figures 5 to 8, each with its MSE (Figures 10 to 13), Table 1,
and the time of EM. Wang et al. (USENIX Security 2017): the variances of the protocols. Yoon et al. (arXiv 2509.24173):
uBD. The data of the papers is not public, or not at hand as they have it; ``benchmarks/paper/populations.py`` says what
takes its place.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks import manhattan
from benchmarks.paper import block_designs, em_time, figures, variances
from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import CENSUS_OF_NINE

RowT = TypeVar("RowT")
PARTS = (*figures.FIGURES, "table1", "time", "variances", "ubd")


def write(part: str, effort: Effort, out: Path) -> None:
    """Reproduce one part, and write its table, and its figure if it has one."""
    if part in figures.FIGURES:
        losses = list(_shown(figures.FIGURES[part](effort)))
        lines = figures.table(losses, part)
        figures.draw(part, losses, out / f"figure{part}.png")
    elif part == "table1":
        lines = manhattan.table(seeds=effort.realizations, users=manhattan.USERS)
    elif part == "variances":
        measured = list(_shown(variances.measure(effort)))
        lines = variances.table(measured)
        variances.draw(measured, out / "variances.png")
    elif part == "ubd":
        compared = list(_shown(block_designs.measure(effort)))
        lines = block_designs.table(compared)
        block_designs.draw(compared, out / "ubd.png")
    elif CENSUS_OF_NINE.exists():
        lines = em_time.table(list(em_time.measure()))
    else:
        lines = [f"Not measured: {CENSUS_OF_NINE.name} is not at hand."]
    (out / f"{'figure' if part in figures.FIGURES else ''}{part}.md").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )


def _shown(rows: Iterable[RowT]) -> Iterator[RowT]:
    """Pass rows on, and show each, because some take minutes."""
    for row in rows:
        print(f"{time.process_time():7.0f} s of CPU  {row}", file=sys.stderr, flush=True)
        yield row


def main() -> None:
    """Reproduce what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--realizations", type=int, default=Effort.realizations, help="of counts, at each point")
    parser.add_argument(
        "--of-reports", type=int, default=Effort.of_reports, help="of reports, for EM on bits; 0 leaves it out"
    )
    parser.add_argument("--quick", action="store_true", help="two points of each curve")
    parser.add_argument("--out", type=Path, default=Path("build/paper"), help="folder of tables and figures")
    arguments = parser.parse_args()
    effort = Effort(arguments.realizations, arguments.of_reports, arguments.quick)
    arguments.out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    for part in arguments.only:
        print(f"{time.monotonic() - began:5.0f} s  {part} ...", file=sys.stderr, flush=True)
        write(part, effort, arguments.out)
    print(f"{arguments.out}: {', '.join(arguments.only)} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
