"""How far the rules of docs/choosing.md are from the best mechanism, over a grid of questions to ``uldp advise``.

    python -m benchmarks.advice

A question is a number of values and of sensitive ones, an epsilon, and a number of users; the truth has falling shares.
A row says by how much the expected l1 error of the mechanism that a rule names is above the least of all mechanisms,
where that is most.
"""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from benchmarks.options import read_options
from uldp.pipelines.advice.question import Question, keys_of_size
from uldp.pipelines.advice.ranking import rank

EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
USERS = (10_000, 1_000_000)
#: Numbers of values, all sensitive; and numbers of values with the parts that are sensitive.
ALL_SENSITIVE = (3, 5, 10, 30, 100, 400, 2000, 20_000, 200_000)
SOME_SENSITIVE = dict.fromkeys((20, 100, 400, 2000), (0.1, 0.5, 0.9)) | {10_000: (0.1,)}


class Point(NamedTuple):
    """A question; ``sensitive`` is None if all values are."""

    size: int
    sensitive: int | None
    epsilon: float
    users: int


def points() -> Iterator[Point]:
    """Yield the questions of the grid."""
    sets: list[tuple[int, int | None]] = [(size, None) for size in ALL_SENSITIVE]
    sets += [(size, round(size * part)) for size, parts in SOME_SENSITIVE.items() for part in parts]
    for size, sensitive in sets:
        yield from (Point(size, sensitive, epsilon, users) for epsilon in EPSILONS for users in USERS)


def rules(point: Point) -> Iterator[tuple[str, str]]:
    """Yield where each rule for a question holds, as the page says it, and the mechanism that it names."""
    size, sensitive, odds = point.size, point.sensitive, math.exp(point.epsilon)
    if sensitive is None:
        if odds > size / 3:
            yield "all are sensitive, E > k/3", "rr"
        else:
            yield "all are sensitive, E ≤ k/3", "ss"
            yield f"all are sensitive, E ≤ k/3, for few bytes, k {'<' if size < 10 else '≥'} 10", "pgr"
        if size > 100_000:
            yield "all are sensitive, k above 100,000", "linear-olh"
    elif odds > 3 * sensitive:
        yield "v of k values are sensitive, E > 3v", "urr"
    elif point.epsilon <= 4:
        yield "v of k values are sensitive, E ≤ 3v, ε ≤ 4", "ubd"
    else:
        yield "v of k values are sensitive, E ≤ 3v, ε > 4", "uss"
        yield "v of k values are sensitive, E ≤ 3v, ε > 4, for few bytes", "ubd"


def expected_errors(point: Point) -> dict[str, float]:
    """Return the expected l1 error of each mechanism that can be built."""
    keys = keys_of_size(point.size, point.sensitive)
    ranked, _ = rank(Question(keys, Path(), None, point.epsilon, point.users, None), lambda mechanism: None)
    return {each.mechanism: each.errors.l1 for each in ranked}


def main() -> None:
    """Print the table."""
    read_options(__doc__)
    above = defaultdict[tuple[str, str], list[tuple[float, Point]]](list)
    left_out = Counter[tuple[str, str]]()
    grid = list(points())
    with click.progressbar(grid, label="questions", show_pos=True, file=sys.stderr) as progress:
        for point in progress:
            errors = expected_errors(point)
            for where, mechanism in rules(point):
                if mechanism in errors:
                    above[where, mechanism].append((errors[mechanism] / min(errors.values()) - 1, point))
                else:
                    left_out[where, mechanism] += 1
    print(f"{len(grid)} questions\n")
    print("| where | mechanism | questions | cannot be built | above the least, at most | k, v, ε, users |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for (where, mechanism), distances in above.items():
        most, (size, sensitive, epsilon, users) = max(distances)
        at = f"{size:,}, {'all' if sensitive is None else f'{sensitive:,}'}, {epsilon:g}, {users:,}"
        print(f"| {where} | {mechanism} | {len(distances)} | {left_out[where, mechanism]} | {most:.1%} | {at} |")


if __name__ == "__main__":
    main()
