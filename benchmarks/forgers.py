"""What forged reports move, and from which share of all reports on a window is flagged, for each mechanism.

    python -m benchmarks.forgers --users 20000
    python -m benchmarks.forgers --users 2000 --null 1000

100 values, of which the first ten are sensitive where a mechanism protects some alone; shares fall as 1, 1/2, 1/3, ...;
epsilon is 1. Forgers want the last sensitive value, or the last one, to seem frequent. Of numbers, users hold those of
a beta(1, 3) distribution, and forgers want a large mean. Of sets and keys, they hold one or two, and rank candidates in
any order; forgers want the last one to be frequent, or to be first. ``--null`` counts flags of honest windows.

- all alike: each sends the payload that counts for most, of those that 80,000 honest devices with the target send.
- noise elsewhere: each draws reports of honest devices with the target, and sends one that counts for the target. So
  its reports look like those of honest users whose every report came out in favour of the target.

``moves`` is how far 1 % of the reports move the unbiased share of the target, in points; of a number the mean, in
percents of the range. ``from`` is the least of some shares at which a job raises a flag, and the flag.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np
from numpy.random import Generator

from benchmarks.options import read_options
from uldp.collector.collections import ServedCollection
from uldp.collector.columns import ReportColumns
from uldp.collector.counting import count_support
from uldp.collector.sealing import WindowSum, flags_of, p_values_of
from uldp.collector.shared_specs import SharedSpecs
from uldp.collector.signals import signal_bits
from uldp.mechanisms.inference.forecast import falling_shares
from uldp.mechanisms.protocol.cells import as_dense
from uldp.mechanisms.protocol.encoding import Held
from uldp.schemas.arrays import Floats, Payloads, Texts, Values
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Number, Pairs, Ranking, Sets, Strings

SIZE, SENSITIVE, USERS = 100, 10, 20_000
#: The shares of forged reports to try.
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
_SET = {"set": {"of": {"size": 50}, "at_most": 3}}
_VALUES, _NUMBER = {"size": SIZE}, {"number": {"low": 0, "high": 1}}
_STRINGS = {"strings": {"longest": 8}}
_TEXTS: Texts = np.array([f"text{i}" for i in range(SIZE)], dtype=np.object_)
_SOME = {"sensitive": list(range(SENSITIVE))}
#: How many payloads of honest devices to choose from, of which about half or fewer count for the target.
_DRAWN = 4


def _keys(name: str, domain: Mapping[str, Any] = _VALUES, **parameters: Any) -> dict[str, Any]:
    return {"domain": domain, "mechanism": {"name": name, "epsilon": 1.0, **parameters}}


#: The keys of the specs.
SPECS: Mapping[str, Mapping[str, Any]] = {
    "rr": _keys("rr"),
    "urr": _keys("urr") | _SOME,
    "metric": _keys("metric", columns=10),
    "sue": _keys("sue"),
    "oue": _keys("oue"),
    "urap": _keys("urap") | _SOME,
    "uoue": _keys("uoue") | _SOME,
    "the": _keys("the"),
    "she": _keys("she"),
    "ss": _keys("ss"),
    "uss": _keys("uss") | _SOME,
    "uhr": _keys("uhr") | _SOME,
    "ubd": _keys("ubd") | _SOME,
    "olh": _keys("olh"),
    "linear-olh": _keys("linear-olh"),
    "hrr": _keys("hrr"),
    "pgr": _keys("pgr"),
    "bit-flip": _keys("bit-flip", bits=20),
    "duchi": _keys("duchi", _NUMBER),
    "block": _keys("block", _NUMBER),
    "geometric": _keys("geometric", _NUMBER),
    "hybrid": _keys("hybrid", _NUMBER),
    "tree": _keys("tree", _NUMBER),
    "blh": _keys("blh"),
    "cohort-olh": _keys("cohort-olh", _STRINGS) | {"candidates": _TEXTS.tolist()},
    "bloom": _keys("bloom", _STRINGS) | {"candidates": _TEXTS.tolist()},
    "set-ss": _keys("set-ss", _SET),
    "set-ss, sizes": _keys("set-ss", _SET, sizes=0.2),
    "set-olh": _keys("set-olh", _SET),
    "set-ss, keys": _keys("set-ss", {"pairs": {"of": {"size": 20}, "at_most": 3, "low": 0, "high": 1}}),
    "pairs": _keys("pairs", {"ranking": {"of": list("abcdefghij")}}),
}


class Window:
    """The honest reports of a window, and those that forgers may send in place of some.

    Args:
        keys: Those of the spec that differ from the others.
        users: The number of reports.
    """

    def __init__(self, keys: Mapping[str, Any], users: int) -> None:
        spec = CollectionSpec.parse({"collection": "c", "version": 1, "window": {"size": "1h"}, **keys})
        self._shared, self.users, rng = SharedSpecs.of([spec]), users, np.random.default_rng(7)
        self.served: ServedCollection = self._shared.served[spec.key]
        self._protocol = self.served.protocol
        self._kind = self.served.spec.variables[""].kind
        self._target = (SENSITIVE if spec.sensitive != "all" else self.served.spec.variables[""].size) - 1
        if isinstance(self._kind, Ranking):
            self._target = len(self._kind.of) - 1
        elif isinstance(self._kind, Strings):
            self._target = SIZE - 1
        elif isinstance(self._kind, Number):  # the mean, or the last bin
            self._target = -1
        self.honest = self._sent(self._held(rng, users), rng)
        self._of_target = self._sent(self._wanted(_DRAWN * users), rng)
        self._counts = self._counted(self._of_target)

    def _held(self, rng: Generator, n: int) -> Values | Floats | Texts:
        """Draw what users hold: of sets, two of the items or keys; of rankings, any order."""
        kind = self._kind
        if isinstance(kind, Ranking):
            orders: Values = rng.permuted(np.tile(np.arange(len(kind.of)), (n, 1)), axis=1)
            return orders
        if isinstance(kind, Number):
            return rng.beta(1, 3, n)
        if isinstance(kind, Strings):
            return _TEXTS.take(rng.choice(SIZE, n, p=falling_shares(SIZE)))
        if not isinstance(kind, Sets):
            return rng.choice(SIZE, n, p=falling_shares(SIZE))
        size = self.served.spec.variables[""].size
        items = rng.choice(size, (n, 2), p=falling_shares(size))
        items[items[:, 0] == items[:, 1], 1] = -1
        return np.stack([items, rng.random(items.shape)], axis=2) if isinstance(kind, Pairs) else items

    def _wanted(self, n: int) -> Values | Floats | Texts:
        """Return what users hold who have the target: the first place, or the key with the largest number."""
        if isinstance(self._kind, Ranking):
            return np.tile(np.roll(np.arange(len(self._kind.of)), -1), (n, 1))
        if isinstance(self._kind, Number):
            return np.ones(n)
        if isinstance(self._kind, Strings):
            return _TEXTS.take(np.full(n, self._target))
        if isinstance(self._kind, Pairs):
            return np.tile([[float(self._target), 1.0]], (n, 1, 1))
        return np.full((n, 1) if isinstance(self._kind, Sets) else n, self._target)

    def _sent(self, values: Values | Floats | Texts, rng: Generator) -> Payloads:
        return self._protocol.perturb([Held(values, np.full(len(values), -1))], rng)

    def _estimate(self, payloads: Payloads) -> float:
        """Return the unbiased estimate of the target, of the mean, or of the last bin."""
        values = self._protocol.decoder.linear(self._protocol.mechanism.statistic(payloads), len(payloads)).values
        return float(values[self._target])

    def _counted(self, payloads: Payloads) -> Floats:
        """Return as how many users each report counts for the target, up to a factor and a term."""
        base = self.honest[:100]
        cells = self._protocol.mechanism.statistic(base)
        rows = self._protocol.mechanism.tally([payloads], np.arange(len(payloads)), len(payloads))
        found: dict[bytes, float] = {}
        counts = np.empty(len(payloads))
        for row, of in enumerate(rows):
            added = as_dense(of)
            key = added.tobytes()
            if key not in found:
                found[key] = float(self._protocol.decoder.linear(cells + added, len(base) + 1).values[self._target])
            counts[row] = found[key]
        return counts

    def alike(self) -> Payloads:
        """Return the reports of forgers who all send the payload that counts for most."""
        best = int(self._counts.argmax())
        return self._of_target.take(np.full(self.users, best), axis=0)

    def with_noise(self) -> Payloads:
        """Return reports that count for the target, and are else as honest noise has them."""
        for_target: Payloads = self._of_target[self._counts >= (self._counts.min() + self._counts.max()) / 2]
        return for_target.take(np.arange(self.users) % len(for_target), axis=0)

    def moved(self, forged: Payloads, share: float) -> float:
        """Return by how much the estimate moves if this share of the reports is forged."""
        return self._estimate(self._mixed(forged, share)) - self._estimate(self.honest)

    def _mixed(self, forged: Payloads, share: float) -> Payloads:
        n = round(share * self.users)
        return cast(Payloads, np.concatenate([forged[:n], self.honest[n:]]))

    def flags(self, forged: Payloads, share: float) -> list[str]:
        """Return the flags of a window with this share of forged reports."""
        return self._flags(self._mixed(forged, share))

    def false_alarm(self, seed: int) -> bool:
        """Return whether a window of other honest reports has a flag."""
        rng = np.random.default_rng([7, seed])
        return bool(self._flags(self._sent(self._held(rng, self.users), rng)))

    def _flags(self, payloads: Payloads) -> list[str]:
        times = np.zeros(self.users, dtype=np.int64)
        _, improbable = self._protocol.mechanism.inspect(payloads)
        columns = ReportColumns(
            *self.served.spec.key, np.zeros((0, 2), np.uint64), times, payloads, signal_bits(times, times, improbable)
        )
        place = self._shared.groups.places[self.served.spec.key]
        ((_, partial),) = count_support(self.served, {place: [columns]}, ServedCollection.span_start)
        total = WindowSum.of(partial, 0)
        (p_values,) = p_values_of(self._protocol.decoder, [total])
        return [flag.value for flag in flags_of(self.served, total, p_values)]


def flagged_from(window: Window, forged: Payloads) -> str:
    """Return the least share of forged reports that is flagged, and the first flag."""
    for share in SHARES:
        if flags := window.flags(forged, share):
            return f"{100 * share:g} %, `{flags[0]}`"
    return "never"


def rows(users: int, names: Iterable[str] = tuple(SPECS)) -> Iterator[tuple[str, float, str, float, str]]:
    """Yield the name of a mechanism, and for both kinds of forgers what 1 % of them move, and when it is flagged."""
    for name in names:
        window = Window(SPECS[name], users)
        alike, noisy = window.alike(), window.with_noise()
        yield (
            name,
            100 * window.moved(alike, 0.01),
            flagged_from(window, alike),
            100 * window.moved(noisy, 0.01),
            flagged_from(window, noisy),
        )


def false_alarms(users: int, windows: int, names: Iterable[str] = tuple(SPECS)) -> Iterator[tuple[str, int]]:
    """Yield the name of a mechanism, and how many honest windows have a flag."""
    for name in names:
        window = Window(SPECS[name], users)
        yield name, sum(map(window.false_alarm, range(windows)))


def main() -> None:
    """Print a Markdown table, or the false alarms."""
    options = read_options(__doc__, users=USERS, null=0)
    if options.null:
        for name, found in false_alarms(options.users, options.null):
            print(f"{name}: {found} of {options.null} honest windows have a flag", flush=True)
        return
    print("| Mechanism | 1 % move, all alike | flagged from | 1 % move, noise elsewhere | flagged from |")
    print("| --- | ---: | --- | ---: | --- |")
    for name, alike, first, noisy, then in rows(options.users):
        print(f"| `{name}` | {alike:.1f} | {first} | {noisy:.1f} | {then} |", flush=True)


if __name__ == "__main__":
    main()
