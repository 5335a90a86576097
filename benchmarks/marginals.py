"""How far tables of two attributes are from the truth, from reports about views, beside HT and large views as of CALM.

    python -m benchmarks.marginals --truths 10

150,000 users hold 16 attributes of two values, or eight of 2, 3, 5, 10, 2, 4, 8 and 3 values. Attributes are a Markov
chain: the shares of the first one are drawn from a Dirichlet distribution with the parameter 2, and those of each next
one, given the one before, with 0.7. All reports are drawn.

An error is the sum of the squared errors of the cells of a table, against the shares among these users: the mean over
all tables of two attributes and all truths. ``to one view`` is the ratio of the error of ``empirical`` to that of the
tables of each view alone. ``covered`` is how often published intervals of cells cover, and in parentheses in the truth
where they cover least. ``apart`` is the largest difference between two tables of ``auto`` in the share of a value. In
HT, for attributes of two values, a user reports one coefficient of one attribute or two by a bit.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from benchmarks.coverage import print_heading
from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.records.decoder import MarginalsDecoder
from uldp.mechanisms.families.records.linear import TablesEstimate
from uldp.mechanisms.families.records.spec import MOST_VIEW_CELLS
from uldp.mechanisms.families.records.views import all_of, best_views
from uldp.mechanisms.pooling.interactions import Attributes
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Counts, Floats, Symbols
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.table import Table, TableName

USERS, TRUTHS = 150_000, 10
EPSILONS = 1.0, 2.0, 4.0
BINARY, MIXED = (2,) * 16, (2, 3, 5, 10, 2, 4, 8, 3)
#: The shares of sets of attributes.
Tables = Mapping[Attributes, Floats]
# A covering has the fewest sets of so many that are tried.
_TRIED = 60


class Measured(NamedTuple):
    """The errors of tables of two attributes of one truth, or of several; see the module.

    Attributes:
        empirical: That of ``empirical``.
        auto: That of ``auto``.
        one_view: That of views alone.
        covered: The share of the cells of tables that published intervals cover.
        apart: The largest difference between two published tables in the share of a value.
    """

    empirical: float
    auto: float
    one_view: float
    covered: float
    apart: float


def users(sizes: Sequence[int], rng: Generator, n: int = USERS) -> Symbols:
    """Draw a truth, and what n users hold, shape (n, attributes)."""
    columns = [rng.choice(sizes[0], n, p=rng.dirichlet(np.full(sizes[0], 2.0)))]
    for before, size in pairwise(sizes):
        below = np.cumsum(rng.dirichlet(np.full(size, 0.7), before), axis=1)[:, :-1]
        columns.append((rng.random((n, 1)) > below[columns[-1]]).sum(axis=1))
    return np.stack(columns, axis=1)


def covering(attributes: int, together: int, rng: Generator) -> list[Attributes]:
    """Return sets of so many attributes that hold each pair, as few as some random choices find."""
    coverings = []
    for _ in range(_TRIED):
        left, found = {*combinations(range(attributes), 2)}, []
        while left:
            sets = [tuple(sorted(rng.permutation(attributes)[:together].tolist())) for _ in range(_TRIED)]
            found.append(max(sets, key=lambda each: len(left & {*combinations(each, 2)})))
            left -= {*combinations(found[-1], 2)}
        coverings.append(found)
    return min(coverings, key=len)


def protocol_of(sizes: Sequence[int], epsilon: float, views: Sequence[Attributes]) -> LdpProtocol:
    """Return the protocol of a collection of these attributes."""
    named = [[f"a{attribute}" for attribute in view] for view in views]
    spec = {
        "collection": "marginals",
        "version": 1,
        "domain": {"record": {f"a{attribute}": {"size": size} for attribute, size in enumerate(sizes)}},
        "mechanism": {"name": "marginals", "epsilon": epsilon, "views": named},
        "window": {"size": "1d"},
    }
    return build_protocol(CollectionSpec.parse(spec))


def measure(protocol: LdpProtocol, sizes: Sequence[int], held: Symbols, rng: Generator) -> Measured:
    """Draw the reports of users, and return the errors of the tables that are made of them."""
    n, decoder = len(held), protocol.decoder
    assert isinstance(decoder, MarginalsDecoder)
    columns = [Held(column, np.full(n, -1)) for column in held.T]
    cells = protocol.mechanism.statistic(protocol.perturb(columns, rng))
    truth = pairs_of(held, sizes)
    unbiased, published = (tables_of(decoder.tables(cells, n, name)) for name in ("empirical", "auto"))
    inside = []
    for pair, values in truth.items():
        table = published[pair]
        assert table.low is not None
        assert table.high is not None
        inside.append((table.low <= values) & (values <= table.high))
    return Measured(
        error({pair: table.values for pair, table in unbiased.items()}, truth),
        error({pair: table.values for pair, table in published.items()}, truth),
        of_views(decoder, cells, n, truth),
        float(np.concatenate(inside).mean()),
        apart(sizes, {pair: table.values for pair, table in published.items()}),
    )


def tables_of(tables: Sequence[Table]) -> dict[Attributes, Table]:
    """Return the tables of shares by the numbers of their attributes."""
    return {tuple(int(name[1:]) for name in table.of): table for table in tables if table.name is TableName.SHARE}


def pairs_of(held: Symbols, sizes: Sequence[int]) -> Tables:
    """Return the share of users with each cell of the tables of two attributes."""
    found: dict[Attributes, Floats] = {}
    for one, two in combinations(range(len(sizes)), 2):
        cells = held[:, one] * sizes[two] + held[:, two]
        found[one, two] = np.bincount(cells, minlength=sizes[one] * sizes[two]) / len(held)
    return found


def error(found: Tables, truth: Tables) -> float:
    """Return the mean of the sums of the squared errors of the tables of the truth."""
    return float(np.mean([((found[pair] - values) ** 2).sum() for pair, values in truth.items()]))


def of_views(decoder: MarginalsDecoder, cells: Counts, n: int, truth: Tables) -> float:
    """Return the error of the tables of two attributes that each view alone gives."""
    linear, found = decoder.linear(cells, n), []
    assert isinstance(linear, TablesEstimate)
    for view, part in zip(linear.design.views, linear.pooled.estimates, strict=True):
        table = part.values.reshape([linear.design.sizes[each] for each in view])
        for axes in combinations(range(len(view)), 2):
            others = tuple(axis for axis in range(len(view)) if axis not in axes)
            pair = view[axes[0]], view[axes[1]]
            found.append(((table.sum(axis=others).ravel() - truth[pair]) ** 2).sum())
    return float(np.mean(found))


def apart(sizes: Sequence[int], found: Tables) -> float:
    """Return the largest difference between a table of one attribute and what those of two say of it."""
    most = 0.0
    for pair in found:
        for axis, attribute in enumerate(pair if len(pair) == 2 else ()):
            sums = found[pair].reshape([sizes[each] for each in pair]).sum(axis=1 - axis)
            most = max(most, float(np.abs(sums - found[attribute,]).max()))
    return most


def hadamard_transform(held: Symbols, epsilon: float, rng: Generator) -> float:
    """Return the error of HT, of attributes of two values, by drawing its reports."""
    n, attributes = held.shape
    signs, pairs = 1 - 2 * held, [*combinations(range(attributes), 2)]
    first, second = np.array([(each, each) for each in range(attributes)] + pairs).T
    drawn = rng.integers(0, len(first), n)
    every = np.arange(n)
    bits = signs[every, first[drawn]] * np.where(drawn < attributes, 1, signs[every, second[drawn]])
    bits = np.where(rng.random(n) < 1 / (math.exp(epsilon) + 1), -bits, bits)
    means = np.bincount(drawn, bits, len(first)) / np.bincount(drawn, minlength=len(first)) / math.tanh(epsilon / 2)
    found: dict[Attributes, Floats] = {}
    for place, (one, two) in enumerate(pairs, attributes):
        a, b, both = means[one], means[two], means[place]
        found[one, two] = np.array([1 + a + b + both, 1 + a - b - both, 1 - a + b - both, 1 - a - b + both]) / 4
    return error(found, pairs_of(held, [2] * attributes))


def designs(sizes: Sequence[int], epsilon: float) -> Iterator[tuple[str, Sequence[Attributes]]]:
    """Yield what devices report together, with a name; first what ``auto`` takes."""
    best, pairs = best_views(tuple(sizes), epsilon, MOST_VIEW_CELLS), all_of(len(sizes), 2)
    if best != tuple(pairs):
        yield f"`auto`: {len(best)} of {len(best[0])}", best
    yield "`pairs`" if best != tuple(pairs) else "`auto`: pairs", pairs
    rng = np.random.default_rng(3)
    if sizes == BINARY:
        views = covering(len(sizes), 6, rng)
        yield f"{len(views)} of 6, as CALM", views
    else:
        yield "`triples`", all_of(len(sizes), 3)
        views = covering(len(sizes), 4, rng)
        yield f"{len(views)} of 4, as CALM", views


def main() -> None:
    """Print a Markdown table."""
    truths = read_options(__doc__, truths=TRUTHS).truths
    print_heading("attributes", "epsilon", "views", "`empirical`", "`auto`", "to one view", "covered", "apart", "to HT")
    for kind, sizes in {"16 of two values": BINARY, "8 of more": MIXED}.items():
        populations = [users(sizes, np.random.default_rng(seed)) for seed in range(1, truths + 1)]
        for epsilon in EPSILONS:
            drawn = [np.random.default_rng([seed, round(100 * epsilon)]) for seed in range(len(populations))]
            of_ht = math.nan
            if sizes == BINARY:
                each = zip(populations, drawn, strict=True)
                of_ht = float(np.mean([hadamard_transform(held, epsilon, rng) for held, rng in each]))
                print(f"| {kind} | {epsilon:g} | HT | {of_ht:.2e} | | | | | |", flush=True)
            for name, views in designs(sizes, epsilon):
                protocol = protocol_of(sizes, epsilon, views)
                found = [measure(protocol, sizes, held, rng) for held, rng in zip(populations, drawn, strict=True)]
                mean = Measured(*np.mean(found, axis=0))
                least = min(one.covered for one in found)
                to_ht = f"{mean.empirical / of_ht:.2f}" if sizes == BINARY else ""
                print(
                    f"| {kind} | {epsilon:g} | {name} | {mean.empirical:.2e} | {mean.auto:.2e}"
                    f" | {mean.empirical / mean.one_view:.2f} | {mean.covered:.3f} ({least:.3f})"
                    f" | {max(one.apart for one in found):.0e} | {to_ht} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
