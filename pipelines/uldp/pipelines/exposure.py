"""What devices reveal that report a value, which does not change, in each window for days: nats, and what is known.

The reader sees all reports of a device, knows nothing else, and takes the value that makes them most probable.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import numpy as np
from numpy.random import Generator

from uldp.mechanisms.catalog import build_protocol, build_variable
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.mechanism import Guarantee
from uldp.pipelines.results.text import number_of
from uldp.schemas.arrays import Counts, Payloads, Values
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import several_epsilons
from uldp.schemas.specs.variable import Variable

#: The devices that are simulated, if their cells are not too many.
_DEVICES, _FEWEST_DEVICES, _MOST_CELLS = 1_000, 20, 1 << 22
# A simulation ends before it has drawn so many bits, or 8 for a symbol, and as soon as this share of devices is known.
_MOST_DRAWS, _ALL = 1 << 26, 0.9995
_DRAWS_AT_ONCE = 1 << 20
_SEED = 0


@dataclass(frozen=True)
class Spent:
    """What a device spends on a value that stays."""

    windows: int  # the windows in which it could report
    reports: int  # those in which its budget lets it report
    epsilon: float | None  # what these reports spend together, in nats; None without privacy

    @classmethod
    def of(cls, spec: CollectionSpec, guarantee: Guarantee, days: int) -> "Spent":
        """Find what a device spends that reports in each window for so many days."""
        # A device that keeps its response makes no two reports in windows that overlap.
        step = spec.window.slice if guarantee.lasting is None else spec.window.size
        windows = reports = max(timedelta(days=days) // step, 1)
        epsilon = guarantee.epsilon
        if epsilon is None or guarantee.lasting is not None:
            return cls(windows, reports, epsilon if reports == 1 else guarantee.lasting)
        if spec.budget is not None:
            of_period, most = -(-spec.budget.every // step), int(spec.budget.epsilon / epsilon * (1 + 1e-9))
            periods, rest = divmod(windows, of_period)
            reports = periods * min(most, of_period) + min(most, rest)
        return cls(windows, reports, reports * epsilon)


def exposure_text(spec: CollectionSpec, days: int) -> Iterator[str]:
    """Yield lines about devices that report in each window for so many days; the simulation has a fixed seed."""
    guarantee = build_protocol(spec).mechanism.guarantee
    spent = Spent.of(spec, guarantee, days)
    of_windows = "" if spent.reports == spent.windows else f", as the budget admits of {spent.windows:,},"
    has, spend = ("has", "spends") if spent.reports == 1 else ("have", "spend")
    nats = f"{has} no privacy" if spent.epsilon is None else f"{spend} epsilon {spent.epsilon:,.6g}"
    most = "up to " if guarantee.terms or several_epsilons(spec.mechanism.name) else ""
    yield f"{number_of(spent.reports, 'report')} of one value{of_windows} {nats.replace('epsilon', f'{most}epsilon')}"
    for name, variable in spec.variables.items():
        reports = spent.reports if guarantee.lasting is not None else max(round(spent.reports * variable.share), 1)
        if found := known(variable, reports):
            (first, share), *last = sorted({found[0], found[-1]})
            later = "".join(f", {100 * all_known:.3g} % after {number_of(t, 'report')}" for t, all_known in last)
            of = f"{name}: where it is reported, " if name else ""
            yield (
                f"{of}a reader knows {100 * share:.3g} % of values after {number_of(first, 'report')}{later}; a guess"
                f" knows {100 / variable.size:.2g} %"
            )


def known(variable: Variable, reports: int) -> list[tuple[int, float]] | None:
    """Simulate devices that hold equally probable values; return which share a reader knows after 1, 2, 4, ... reports.

    It goes on to ``reports``, or to where all are known. None if no values are listed, or a device has too many cells.
    """
    if not variable.kind.listed:
        return None
    protocol = build_variable(variable)
    cells, rng = protocol.mechanism.statistic_size, np.random.default_rng(_SEED)
    n = min(_DEVICES, _MOST_CELLS // cells)
    if n < _FEWEST_DEVICES:
        return None
    truth = rng.integers(0, variable.size, n)
    devices = _Devices(variable, truth, rng)
    found: list[tuple[int, float]] = []
    total, drawn, most = np.zeros((n, cells), np.int64), 0, max(_MOST_DRAWS // (n * devices.draws), 1)
    while drawn < min(reports, most) and not (found and found[-1][1] >= _ALL):
        more = min(max(drawn, 1), min(reports, most) - drawn)
        total += devices.report(more)
        drawn += more
        guesses = protocol.decoder.guesses(total, drawn, variable.size)
        found.append((drawn, float(np.mean(guesses == truth))))
    return found


class _Devices:
    """Devices that each hold one value for ever, and choose one level of privacy if there are several."""

    def __init__(self, variable: Variable, values: Values, rng: Generator) -> None:
        self.protocol, self._values, self._rng = build_variable(variable), values, rng
        self.draws = 8 * (self.protocol.mechanism.form.width or 1)
        self._symbols = self.protocol.encoding.encode(_visible(values), rng)
        self._keeps_symbol = several_epsilons(variable.mechanism.name)
        keeping = self.protocol.mechanism.kept
        self._responses = None if keeping is None else keeping.permanent(self._symbols, rng)

    def report(self, times: int) -> Counts:
        """Let each device report, and return what its reports add to its cells, shape (devices, cells)."""
        n, mechanism = len(self._values), self.protocol.mechanism
        cells = np.zeros((n, mechanism.statistic_size), np.int64)
        at_once = max(_DRAWS_AT_ONCE // (n * self.draws), 1)
        for first in range(0, times, at_once):
            again = min(at_once, times - first)
            tallied = mechanism.tally([self._payloads(again)], np.repeat(np.arange(n), again), n)
            cells += np.array([as_dense(each) for each in tallied])
        return cells

    def _payloads(self, times: int) -> Payloads:
        """Return the payloads of as many reports of each device, one device after the other."""
        mechanism = self.protocol.mechanism
        if mechanism.kept is not None and self._responses is not None:
            return mechanism.kept.again(cast(Payloads, np.repeat(self._responses, times, axis=0)), self._rng)
        if self._keeps_symbol:
            return mechanism.perturb(np.repeat(self._symbols, times), self._rng)
        return self.protocol.perturb(_visible(np.repeat(self._values, times)), self._rng)


def _visible(values: Values) -> list[Held]:
    return [Held(values, np.full(len(values), -1))]
