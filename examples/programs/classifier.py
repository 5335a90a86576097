"""A naive Bayes classifier from reports of views of two attributes; docs/classifier.md explains it.

It simulates reports of 60,000 users about six attributes, and classifies 20,000 other users.
"""

import numpy as np
from numpy.typing import NDArray

from uldp.mechanisms import Held, build_protocol
from uldp.schemas import CollectionSpec

SIZES, USERS, ASKED, EPSILON = (2, 3, 4, 2, 3, 2), 60_000, 20_000, 1.0
NAMES = [f"a{number}" for number in range(len(SIZES))]
#: The share of users who leave.
LEAVE = 0.3
RNG = np.random.default_rng(1)
#: The shares of the values of each attribute, among the users who stay and the users who leave.
TRUTH = [RNG.dirichlet(np.full(size, 2.0), 2) for size in SIZES]
SPEC = CollectionSpec.parse(
    {
        "collection": "leaving",
        "version": 1,
        "domain": {"record": {"leaves": {"size": 2}} | {n: {"size": k} for n, k in zip(NAMES, SIZES, strict=True)}},
        "mechanism": {"name": "marginals", "epsilon": EPSILON, "views": [["leaves", name] for name in NAMES]},
        "window": {"size": "1d"},
    }
)

Columns = list[NDArray[np.int64]]
Shares = NDArray[np.float64]


def users(n: int) -> Columns:
    """Draw users: whether each leaves, and the values of each attribute."""
    leaves = (RNG.random(n) < LEAVE).astype(np.int64)
    ends = [np.cumsum(shares, axis=1)[:, :-1] for shares in TRUTH]
    return [leaves, *((RNG.random((n, 1)) > end[leaves]).sum(axis=1) for end in ends)]


def estimated(columns: Columns) -> tuple[Shares, list[Shares]]:
    """Return the estimated shares of the classes, and of each class and each value of an attribute."""
    protocol = build_protocol(SPEC)
    n = len(columns[0])
    payloads = protocol.perturb([Held(column, np.full(n, -1)) for column in columns], RNG)
    tables = protocol.decoder.tables(protocol.mechanism.statistic(payloads), n, "auto")
    shares = {table.of: table.values for table in tables if table.name == "share"}
    return shares["leaves",], [shares["leaves", name].reshape(2, -1) for name in NAMES]


def accuracy(of_class: Shares, joint: list[Shares], asked: Columns) -> float:
    """Return the share of users whose class is the most probable one."""
    scores = np.log(of_class)
    for shares, column in zip(joint, asked[1:], strict=True):
        # No share is taken as 0: a single attribute would decide.
        scores = scores + np.log(np.maximum(shares / shares.sum(axis=1, keepdims=True), 0.001)).T[column]
    return float((scores.argmax(axis=1) == asked[0]).mean())


if __name__ == "__main__":
    known = estimated(users(USERS))
    asked = users(ASKED)
    exact = accuracy(np.array([1 - LEAVE, LEAVE]), TRUTH, asked)
    print(f"{accuracy(*known, asked):.3f} are right, {exact:.3f} by true shares, {1 - LEAVE} always")
