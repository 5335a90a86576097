"""The error of mean Borda scores: pairs of candidates, against the voting mechanisms of the literature.

    python -m benchmarks.rankings --candidates 8 --windows 200

Voters follow Plackett and Luce's model. Reports are drawn one by one. An error is n times the mean square over
candidates and windows, so it is the variance of one report's contribution. Weighted sampling draws a candidate by its
score, and reports it by subset selection of the best size. The additive mechanism adds Laplace noise to all scores.
"""

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from benchmarks.coverage import print_heading
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Floats, Values
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import TableName

USERS, EPSILONS = 10_000, (1.0, 2.0, 4.0)
#: Estimates the scores of candidates, shape (k,), from the places that n users give them, shape (n, k).
Voting = Callable[[Values, float, Generator], Floats]


def protocol_of(candidates: int, epsilon: float) -> LdpProtocol:
    """Return the protocol of a collection of rankings."""
    spec = {
        "collection": "votes",
        "version": 1,
        "domain": {"ranking": {"of": [f"c{i}" for i in range(candidates)]}},
        "mechanism": {"name": "pairs", "epsilon": epsilon},
        "window": {"size": "1d"},
    }
    return build_protocol(CollectionSpec.parse(spec))


def vote(n: int, candidates: int, rng: Generator) -> Values:
    """Draw the places of candidates whose log-worths are even steps from 0 to 1.2."""
    worth = np.linspace(0, 1.2, candidates) + rng.gumbel(size=(n, candidates))
    places: Values = np.argsort(np.argsort(-worth, axis=1), axis=1)
    return places


def by_pairs(places: Values, epsilon: float, rng: Generator) -> Floats:
    """Estimate by devices and decoder of this project."""
    n, candidates = places.shape
    protocol = protocol_of(candidates, epsilon)
    cells = protocol.mechanism.statistic(protocol.perturb([Held(places, np.full(n, -1))], rng))
    tables = protocol.decoder.tables(cells, n, "empirical")
    return next(table.values for table in tables if table.name is TableName.SCORE)


def by_weighted_sampling(places: Values, epsilon: float, rng: Generator) -> Floats:
    """Estimate from one candidate of each user, drawn by its score."""
    n, k = places.shape
    points, total = k - 1 - places, k * (k - 1) / 2
    below = rng.random((n, 1)) * total
    drawn = (below >= np.cumsum(points, axis=1)).sum(axis=1)
    e = math.exp(epsilon)
    w = max(1, round(k / (e + 1)))
    p = w * e / (w * e + k - w)
    # A random order of the others, of which the first are in the subset beside the drawn one or in its place.
    keys = rng.random((n, k))
    keys[np.arange(n), drawn] = np.where(rng.random(n) < p, -1.0, 2.0)
    subsets = np.argsort(keys, axis=1)[:, :w]
    supports = np.bincount(subsets.ravel(), minlength=k)
    q = (p * (w - 1) + (1 - p) * w) / (k - 1)
    return np.asarray(total * (supports / n - q) / (p - q))


def by_additive_noise(places: Values, epsilon: float, rng: Generator) -> Floats:
    """Estimate from all scores with Laplace noise; two rankings differ by up to floor(k^2/2) points in all."""
    n, k = places.shape
    noise = rng.laplace(scale=(k * k // 2) / epsilon, size=(n, k))
    mean: Floats = (k - 1 - places + noise).mean(axis=0)
    return mean


MECHANISMS: dict[str, Voting] = {
    "pairs": by_pairs,
    "weighted sampling": by_weighted_sampling,
    "additive": by_additive_noise,
}


def measure(voting: Voting, candidates: int, epsilon: float, windows: int, users: int = USERS) -> float:
    """Return n times the mean square error of a score."""
    rng = np.random.default_rng([candidates, round(100 * epsilon)])
    squares = []
    for _ in range(windows):
        places = vote(users, candidates, rng)
        truth = (candidates - 1 - places).mean(axis=0)
        squares.append(np.mean((voting(places, epsilon, rng) - truth) ** 2))
    return users * float(np.mean(squares))


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, nargs="+", default=(5, 8, 20))
    parser.add_argument("--windows", type=int, default=200)
    arguments = parser.parse_args()
    print_heading("candidates", "epsilon", *MECHANISMS)
    for candidates in arguments.candidates:
        for epsilon in EPSILONS:
            found = (measure(voting, candidates, epsilon, arguments.windows) for voting in MECHANISMS.values())
            print(f"| {candidates} | {epsilon:g} | {' | '.join(f'{error:,.0f}' for error in found)} |")


if __name__ == "__main__":
    main()
