"""The results of the papers, reproduced: tables and figures, with fixed seeds.

    python -m benchmarks.paper                       all of it; writes build/paper/*.md and *.png
    python -m benchmarks.paper --only 5 table1       some of it
    python -m benchmarks.paper --quick               two points of each curve, to see that it runs

ULDP paper (Murakami & Kawamoto, USENIX Security 2019): Figures 5 to 8, each with its MSE (Figures 10 to 13), Table 1,
and the time of EM. Wang et al. (USENIX Security 2017): the variances of the protocols, and frequent values. Yoon et al.
(arXiv 2509.24173): uBD. The data of the papers is not public, or not at hand as they have it;
``benchmarks/paper/populations.py`` says what takes its place.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks import manhattan
from benchmarks.bit_likelihood import GAP
from benchmarks.paper import block_designs, em_time, figures, frequent, variances
from benchmarks.paper.losses import Effort
from benchmarks.paper.populations import CENSUS_OF_NINE

RowT = TypeVar("RowT")
PARTS = (*figures.FIGURES, "table1", "time", "variances", "frequent", "ubd")

_CENSUS = (
    "The joint distribution of the census is a model, a tree of pairs of attributes; that of each attribute is exact."
)
_MANHATTAN = "The check-ins of Manhattan are a thirteenth of the paper's, with other sensitive cells."
_EM = (
    "EM is taken to its limit, the maximum of the likelihood. It is exact if a report is one symbol. For bits, it"
    f" starts at wls, and stops when the mean log-likelihood of a report is proved to be within {GAP:g} of its maximum."
    " The paper starts EM at emp+thr, and does not say when it stops."
)
_USERS = "Users are drawn i.i.d.; the paper draws half of a finite population, and so has less error without privacy."
#: What must be known to compare a table with the paper.
NOTES = {
    "5": (_CENSUS, _MANHATTAN, _EM, _USERS),
    "6": (_CENSUS, _MANHATTAN, _EM, _USERS, "The sensitive values are one random choice; the paper has a hundred."),
    "7": (_CENSUS, _EM, _USERS),
    "8": (_MANHATTAN, _EM),
    "table1": (_MANHATTAN, "Of the users 17.5 % hide their value, not 6.8 %, hence the larger second term.", _EM),
    "time": (_CENSUS, _EM),
    "variances": ("Variances are of a count, in users squared.",),
    "frequent": ("Kosarak and Rockyou are not at hand; the values follow Zipf's law with s = 1.5.",),
    "ubd": (_CENSUS, _MANHATTAN, "Errors are n times the mean squared error, by formulas; estimates are unbiased."),
}


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
    elif part == "frequent":
        lines = frequent.table(list(_shown(frequent.measure(effort))))
    elif part == "ubd":
        compared = list(_shown(block_designs.measure(effort)))
        lines = block_designs.table(compared)
        block_designs.draw(compared, out / "ubd.png")
    elif CENSUS_OF_NINE.exists():
        lines = em_time.table(list(em_time.measure()))
    else:
        lines = [f"Not measured: {CENSUS_OF_NINE.name} is not at hand."]
    notes = [*NOTES[part]]
    if part == "7" and not CENSUS_OF_NINE.exists():
        notes.append(f"Not measured with more than four attributes: {CENSUS_OF_NINE.name} is not at hand.")
    (out / f"{'figure' if part in figures.FIGURES else ''}{part}.md").write_text(
        "\n".join([" ".join(notes), "", *lines, ""]), encoding="utf-8"
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
