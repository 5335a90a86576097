"""What zones behind a tag gain in accuracy: the l1 loss of PUM on the check-ins that the project ships.

    python -m benchmarks.zones --seeds 20 --users 179527 --windows 24

Plain PUM assumes where the users behind a tag are. With nested tags, reports answer in which zone, with a budget of
their own (zone_epsilon), and the answers of several windows are added. With zones, a report names the zone. The zones
are those of the example: from the background alone, without the truth. Cells are drawn from their multinomial law. The
estimator is the maximum likelihood.

A second table says how often intervals cover a cell where a user hides: those of the share, the band, and the one that
is shown, which is the band where background puts more than a tenth of the share. ``weighted`` counts such a cell by the
users who hide it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import covers, print_heading, print_row
from benchmarks.options import read_options
from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.zones.nested_response import NestedResponse
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.pipelines.results.tables import carried
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table, TableName

EXAMPLE = Path(__file__).parents[1] / "examples" / "manhattan"
SEEDS, USERS, FEWER_USERS, WINDOWS = 20, 179_527, 60_000, 24
#: The budget of the example, and a smaller one.
EPSILONS = (6.437751649736401, 3.0)
ZONE_EPSILONS = (1.0, 2.0)


class Setting(NamedTuple):
    """A way to know what is behind tags.

    Attributes:
        name: Its name in the table.
        spec: The spec of the example.
        knowledge: The background: that of the spec, none, or the true distribution.
        zone_epsilon: The budget of the answer about the zone, if the spec is nested.yaml.
        windows: The number of windows whose answers are added; 1 for those of the window alone.
    """

    name: str
    spec: str = "spec.yaml"
    knowledge: str = "shipped"
    zone_epsilon: float | None = None
    windows: int = 1


def settings(windows: int) -> Iterator[Setting]:
    """Yield the rows of the table."""
    yield Setting("plain, no background", knowledge="none")
    yield Setting("plain, shipped background")
    yield Setting("plain, true distribution", knowledge="true")
    for budget in ZONE_EPSILONS:
        yield Setting(f"nested, ε' = {budget:g}, one window", "nested.yaml", zone_epsilon=budget)
        pooled = f"nested, ε' = {budget:g}, {windows} windows pooled"
        yield Setting(pooled, "nested.yaml", zone_epsilon=budget, windows=windows)
    yield Setting("zones", "zones.yaml")


@cache
def _example(spec: str) -> tuple[Variable, Truth]:
    loaded = CollectionSpec.load(EXAMPLE / spec)
    return loaded.variables[""], Truth.load(EXAMPLE / "truth.csv", loaded)


class Covered(NamedTuple):
    """How often intervals cover cells where a user hides.

    Attributes:
        share: Those of the share.
        weighted: Those of the share, weighted by the users who hide each cell.
        band: The bands.
        shown: What is shown.
        shown_weighted: What is shown, weighted by the users who hide each cell.
    """

    share: float
    weighted: float
    band: float
    shown: float
    shown_weighted: float


def measure(setting: Setting, *, epsilon: float = EPSILONS[0], seeds: int = SEEDS, users: int = USERS) -> Floats:
    """Simulate windows once per seed, and return the l1 loss of the last one for each seed, shape (seeds,)."""
    truth = _example(setting.spec)[1].distribution()
    windows = _estimates(setting, epsilon, seeds, users)
    return np.array([np.abs(_named(tables, TableName.SHARE).values - truth).sum() for tables in windows])


def measure_coverage(setting: Setting, *, seeds: int = SEEDS, users: int = USERS) -> Covered:
    """Simulate windows once per seed, and return how often intervals of the last one cover."""
    loaded = _example(setting.spec)[1]
    truth, ((values, tags),) = loaded.distribution(), loaded.columns
    hiders = np.bincount(np.asarray(values, dtype=np.int64), loaded.probabilities * (tags >= 0), len(truth))
    covered = []
    for tables in _estimates(setting, EPSILONS[0], seeds, users):
        share, visible, band = (_named(tables, name) for name in (TableName.SHARE, TableName.VISIBLE, TableName.BAND))
        of_share, of_band = covers(share, truth), covers(band, truth)
        covered.append((of_share, of_band, np.where(carried(share, visible, band), of_band, of_share)))
    of_share, of_band, shown = np.mean(covered, axis=0)
    hidden = hiders > 0
    weighted, shown_weighted = (float(each @ hiders / hiders.sum()) for each in (of_share, shown))
    mean = [float(each[hidden].mean()) for each in (of_share, of_band, shown)]
    return Covered(mean[0], weighted, mean[1], mean[2], shown_weighted)


def _named(tables: Sequence[Table], name: TableName) -> Table:
    return next(table for table in tables if table.name is name)


def _estimates(setting: Setting, epsilon: float, seeds: int, users: int) -> Iterator[Sequence[Table]]:
    """Yield the tables of the last window for each seed."""
    variable, truth = _example(setting.spec)
    common, tags = variable.mechanism.model_copy(update={"epsilon": epsilon}), variable.tags
    if setting.zone_epsilon is not None:
        tags = [tag.model_copy(update={"zone_epsilon": setting.zone_epsilon}) for tag in tags]
    variable = replace(variable, mechanism=common, tags=tags)
    ((values, hidden),), weights = truth.columns, truth.probabilities
    values = np.asarray(values, dtype=np.int64)
    if setting.knowledge != "shipped":
        pi = np.array([np.bincount(values, weights * (hidden == tag), variable.size) for tag in range(len(tags))])
        pi = pi / pi.sum(axis=1, keepdims=True) if setting.knowledge == "true" else np.full_like(pi, np.nan)
        variable = replace(variable, background=pi, strength=np.full(len(tags), np.nan))
    protocol = build_variable(variable)
    inputs = protocol.encoding.encode([Held(values, hidden)], np.random.default_rng(0))
    r = np.asarray(np.bincount(inputs, weights, protocol.mechanism.size), dtype=np.float64)
    mechanism, decoder = protocol.mechanism, protocol.decoder
    assert isinstance(decoder, PureDecoder)
    law = mechanism.law(r) if isinstance(mechanism, NestedResponse) else decoder.channel.support_probability(r)
    for seed in range(seeds):
        windows = np.random.default_rng(seed).multinomial(users, law / law.sum(), setting.windows)
        known = variable
        if setting.windows > 1:
            assert isinstance(decoder, ZonedDecoder)
            learned = decoder.learned(windows.sum(axis=0), users * setting.windows).values()
            background = np.array([each.background for each in learned])
            known = replace(variable, background=background, strength=np.array([each.strength for each in learned]))
        yield build_variable(known).decoder.tables(windows[-1], users, "mle")


def main() -> None:
    """Print two Markdown tables."""
    arguments = read_options(__doc__, seeds=SEEDS, users=USERS, windows=WINDOWS)
    columns = [(epsilon, users) for epsilon in EPSILONS for users in (arguments.users, FEWER_USERS)]
    print("| l1 loss |", " | ".join(f"ε {epsilon:.2f}, n {users:,}" for epsilon, users in columns), "|")
    print("| --- |", " | ".join("---" for _ in columns), "|")
    for setting in settings(arguments.windows):
        means = [
            measure(setting, epsilon=epsilon, seeds=arguments.seeds, users=users).mean() for epsilon, users in columns
        ]
        print(f"| {setting.name} |", " | ".join(f"{mean:.3f}" for mean in means), "|", flush=True)
    print_heading("cells where users hide, covered", "n", *Covered._fields)
    for setting in settings(arguments.windows):
        if setting.knowledge == "shipped":
            print_row(
                setting.name, arguments.users, measure_coverage(setting, seeds=arguments.seeds, users=arguments.users)
            )


if __name__ == "__main__":
    main()
