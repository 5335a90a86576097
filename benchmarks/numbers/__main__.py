"""Whether each published number keeps the laws of ``tests/mechanisms/laws_of_numbers.py``, and what it loses to others.

    python -m benchmarks.numbers                     all blocks, some of which take hours
    python -m benchmarks.numbers --block numbers --windows 100 --only rr "tree of 256 bins"
    python -m benchmarks.numbers --block auto ordered borda kept compare

- numbers: each statistic of each mechanism at three budgets and numbers of reports: the worst setting of each law;
- auto: the squared error of shares, over the better of empirical Bayes and ``wls``, in 420 settings;
- ordered: that of ranges of bins, over the best of several estimators, and over what it was, in 48 settings;
- borda: the bias, the coverage and the error of mean scores, in 42 settings;
- kept: roll-ups of windows whose devices keep their responses, in 16 settings;
- compare: how often two windows of one population are found to differ as a whole, in 56 settings.

Equal options give equal tables. Progress goes to stderr. Devices draw all reports but those of ``auto``.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.numbers import auto, borda, compare, kept, ordered, table

#: Windows of a setting of the block ``numbers``.
WINDOWS = 500
BLOCKS: Mapping[str, Callable[[], Iterator[str]]] = {
    "auto": auto.lines,
    "ordered": ordered.lines,
    "borda": borda.lines,
    "kept": kept.lines,
    "compare": compare.lines,
}


def lines(block: str, windows: int, only: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a block."""
    yield f"\n## {block}\n"
    yield from table.lines(windows, only) if block == "numbers" else BLOCKS[block]()


def main() -> None:
    """Print the tables of the blocks that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--windows", type=int, default=WINDOWS, help="of a setting of numbers; other blocks have their own"
    )
    parser.add_argument("--only", nargs="+", default=table.names(), choices=table.names(), metavar="NAME")
    parser.add_argument("--block", nargs="+", default=["numbers", *BLOCKS], choices=["numbers", *BLOCKS])
    arguments = parser.parse_args()
    for block in arguments.block:
        for line in lines(block, arguments.windows, arguments.only):
            print(line, flush=True)


if __name__ == "__main__":
    main()
