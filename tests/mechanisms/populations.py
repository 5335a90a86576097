"""Populations from which devices are drawn i.i.d., and what is true of them: the numbers that tables estimate.

A population follows from the domain of a spec alone, so that each example of ``protocols`` has one. It is none of an
estimator's assumptions: shares fall, one value is held by nobody, some numbers are out of range, and some sets are
larger than a device reports.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.random import Generator, default_rng

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.schemas.arrays import Floats, Texts, Values
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Number, Pairs, Ranking, Sets, Strings, StringSets
from uldp.schemas.specs.variable import Variable
from uldp.schemas.table import Table, TableName

#: The share of users that hide their value behind the tag, if there is one, whatever the value is.
HIDDEN = 0.2
#: Of strings, the share of users whose string nobody asks for. No alphabet of a spec has it.
UNLISTED, _OTHER = 0.1, "=?"
#: Numbers are beta variables with the density 3 (1 - x)^2 on [0, 1]; some users are above the range, at its end.
_ABOVE, _SHAPE = 0.03, (1, 3)
#: The sets that users hold are some of so many.
_SETS = 64


def falling(size: int) -> Floats:
    """Shape (size,): shares that fall as 1/i^1.3, in no order; of four values and more, one is held by nobody."""
    shares = np.arange(1, size + 1) ** -1.3
    if size >= 4:
        shares[-1] = 0
    return np.asarray(default_rng(size).permutation(shares) / shares.sum())


def _below(places: Floats) -> Floats:
    """Return the share of numbers below places in [0, 1)."""
    return np.asarray((1 - _ABOVE) * (1 - (1 - places) ** _SHAPE[1]))


@dataclass(frozen=True, eq=False)
class Holders:
    """Users who hold something of one variable.

    Attributes:
        variable: The variable.
        turned: By how many places the shares of values are turned, which makes another population.
        unlisted: The share of users with a string that nobody asks for. Its collisions are the same in all windows.
    """

    variable: Variable
    turned: int = 0
    unlisted: float = UNLISTED

    @property
    def size(self) -> int:
        """The number of values, items, keys or strings."""
        return self.variable.size or len(self.variable.candidates)

    @cached_property
    def shares(self) -> Floats:
        """Shape (size,): the share of users with each value, or who report each item."""
        kind = self.variable.kind
        if isinstance(kind, Sets | StringSets):
            sizes = self._sets.sum(axis=1)
            return np.asarray(self._odds * np.minimum(1, kind.held / np.maximum(sizes, 1)) @ self._sets)
        if isinstance(kind, Strings):
            return (1 - self.unlisted) * self._open
        hidden = HIDDEN * len(self.variable.tags)
        return np.asarray((1 - hidden) * self._open + hidden * self._hidden)

    @cached_property
    def _open(self) -> Floats:
        """Shape (size,): the shares of values among users who hide nothing."""
        return np.roll(falling(self.size), self.turned)

    @cached_property
    def _hidden(self) -> Floats:
        """Shape (size,): the shares of values among users behind a tag: uniform in a zone, as decoders take them."""
        zones = self.variable.zones[0] if self.variable.tags else None
        if zones is None:
            return self._open
        of_zones = np.bincount(zones.of_value, self._open) / np.bincount(zones.of_value)
        return np.asarray(of_zones[zones.of_value])

    @cached_property
    def _sets(self) -> Floats:
        """Shape (64, size): whether an item is in each of the sets; the last item is in none."""
        wanted = np.minimum(2.2 * falling(self.size) / falling(self.size).max() * 0.4, 0.7)
        sets: Floats = (default_rng([2, self.size]).random((_SETS, self.size)) < wanted).astype(np.float64)
        sets[:, -1] = 0
        return sets

    @cached_property
    def _odds(self) -> Floats:
        return default_rng([3, self.size]).dirichlet(np.full(_SETS, 4.0))

    @cached_property
    def _worths(self) -> Floats:
        """Shape (k,): the odds of candidates in pairs of them, as of Plackett and Luce."""
        return np.asarray(np.exp(-0.3 * np.arange(len(_ranked(self.variable)))))

    def hold(self, rng: Generator, n: int) -> Held:
        """Draw what n users hold."""
        kind, nowhere = self.variable.kind, np.full(n, -1)
        if isinstance(kind, Sets | StringSets):
            return Held(self._draw_sets(rng, n), nowhere)
        if isinstance(kind, Ranking):
            worths = np.log(self._worths) + rng.gumbel(size=(n, len(self._worths)))
            return Held(np.argsort(np.argsort(-worths, axis=1), axis=1), nowhere)
        if isinstance(kind, Number):
            places = np.where(rng.random(n) < _ABOVE, 1.2, rng.beta(*_SHAPE, n))
            return Held(kind.low + places * (kind.high - kind.low), nowhere)
        if isinstance(kind, Strings):
            texts = np.array([*self.variable.candidates, _OTHER], dtype=np.object_)
            return Held(texts[rng.choice(len(texts), n, p=np.append(self.shares, self.unlisted))], nowhere)
        hides = rng.random(n) < HIDDEN * len(self.variable.tags)
        values = rng.choice(self.size, n, p=self._open)
        values[hides] = rng.choice(self.size, np.count_nonzero(hides), p=self._hidden)
        return Held(values, hides.astype(np.int64) - 1)

    def _draw_sets(self, rng: Generator, n: int) -> Values | Floats | Texts:
        kind, width = self.variable.kind, int(self._sets.sum(axis=1).max())
        items = np.argsort(-self._sets, axis=1, kind="stable")[:, :width]
        there = np.take_along_axis(self._sets, items, axis=1) > 0
        which = rng.choice(_SETS, n, p=self._odds)
        if isinstance(kind, StringSets):
            texts = np.array([*self.variable.candidates, None], dtype=np.object_)
            return texts[np.where(there, items, self.size)][which]
        items = np.where(there, items, -1)[which]
        if not isinstance(kind, Pairs):
            return items
        numbers = kind.low + (kind.high - kind.low) * rng.beta(1 + items.clip(0) % 4, 3)
        return np.stack([items, numbers], axis=2)

    @property
    def linear(self) -> Floats:
        """What ``decoder.linear`` estimates: a mean, scores, or shares, those behind a tag apart."""
        if isinstance(self.variable.kind, Number):
            return self.mean
        if isinstance(self.variable.kind, Ranking):
            return np.asarray(self._beats.sum(axis=1))
        if not self.variable.tags:
            return self.shares
        (tag,), (zones,) = self.variable.tags, self.variable.zones
        of_bots = (
            np.ones(1) if zones is None or tag.zone_epsilon is not None else np.bincount(zones.of_value, self._hidden)
        )
        return np.append((1 - HIDDEN) * self._open, HIDDEN * of_bots)

    @property
    def mean(self) -> Floats:
        """Shape (1,): the mean of numbers, those out of range at its end."""
        kind = self.variable.kind
        assert isinstance(kind, Number)
        place = _ABOVE + (1 - _ABOVE) * _SHAPE[0] / sum(_SHAPE)
        return np.array([kind.low + place * (kind.high - kind.low)])

    @property
    def _beats(self) -> Floats:
        """Shape (k, k): the shares of users who rank one candidate above another."""
        beats = self._worths[:, np.newaxis] / (self._worths[:, np.newaxis] + self._worths)
        np.fill_diagonal(beats, 0)
        return np.asarray(beats)

    def truth(self, table: Table) -> Floats | None:
        """Return what a table of the variable estimates, shape of its values; None if it is no number of users."""
        return None if table.name not in _TRUTHS else _TRUTHS[table.name](self, table)

    def of_shares(self, table: Table) -> Floats:
        """Return the shares of values, of bins, of items, or of the strings that a table names."""
        if isinstance(self.variable.kind, Number):
            return np.diff(np.append(_below(np.arange(len(table.values)) / len(table.values)), 1.0))
        names = dict(zip(self.variable.candidates, self.shares, strict=False))
        return np.array([names.get(key, 0.0) for key in table.keys]) if names and table.keys else self.shares

    def of_open(self, table: Table) -> Floats:
        """Return the shares of users with each value who do not hide it."""
        return (1 - HIDDEN) * self._open

    def of_means(self, table: Table) -> Floats:
        """Return the mean of numbers, or those of the numbers of keys, in the order of the table."""
        kind = self.variable.kind
        if isinstance(kind, Number):
            return self.mean
        assert isinstance(kind, Pairs)
        keys = np.array([self.variable.labels.index(key) for key in table.keys or ()])
        return np.asarray(kind.low + (1 + keys % 4) / (4 + keys % 4) * (kind.high - kind.low))

    def of_sizes(self, table: Table) -> Floats:
        """Return the shares of users with each number of items, in ranges such as ``2 to 3`` and ``6 or more``."""
        sizes, found = self._sets.sum(axis=1), []
        for key in table.keys or ():
            low, _, high = key.removesuffix(" or more").partition(" to ")
            end = math.inf if key.endswith("more") else float(high or low)
            found.append(self._odds[(sizes >= float(low)) & (sizes <= end)].sum())
        return np.array(found)

    def of_pairs(self, table: Table) -> Floats:
        """Return the shares of users who rank one candidate above another, or the mean scores of candidates."""
        return np.asarray(self._beats.sum(axis=1) if table.name is TableName.SCORE else self._beats.ravel())

    def of_bins(self, table: Table) -> Floats:
        """Return the shares below edges, in ranges, or the quantiles, from what the keys of the table say."""
        kind, keys = self.variable.kind, table.keys or ()
        if isinstance(kind, Number):
            if table.name is TableName.QUANTILE:
                levels = np.array([float(key) for key in keys])
                places = 1 - (1 - levels / (1 - _ABOVE)) ** (1 / _SHAPE[1])
                return np.asarray(kind.low + places * (kind.high - kind.low))
            ends = np.array([[kind.low, *map(float, key.split(" to "))][-2:] for key in keys])
            places = (ends - kind.low) / (kind.high - kind.low)
            return np.asarray(np.diff(np.where(places >= 1, 1.0, _below(np.minimum(places, 1.0))))[:, 0])
        below = np.append(0.0, np.cumsum(self.shares))
        if table.name is TableName.QUANTILE:
            return np.searchsorted(below[1:], [float(key) - 1e-12 for key in keys]).astype(np.float64)
        labels = self.variable.labels
        ends = np.array([[labels.index(end) for end in [labels[0], *key.split(" to ")][-2:]] for key in keys])
        return np.asarray(below[ends[:, 1] + 1] - below[ends[:, 0]])

    def of_zones(self, table: Table) -> Floats:
        """Return the shares of users who hide their value in each zone of the only tag."""
        zones = self.variable.zones[0]
        assert zones is not None
        return np.asarray(HIDDEN * np.bincount(zones.of_value, self._hidden))


_TRUTHS: Mapping[TableName, Callable[[Holders, Table], Floats]] = {
    TableName.SHARE: Holders.of_shares,
    TableName.BAND: Holders.of_shares,
    TableName.VISIBLE: Holders.of_open,
    TableName.HIDDEN: lambda _, table: np.full(len(table.values), HIDDEN),
    TableName.ZONE: Holders.of_zones,
    TableName.MEAN: Holders.of_means,
    TableName.MEAN_SIZE: lambda holders, _: np.array([holders.shares.sum()]),
    TableName.SIZE: Holders.of_sizes,
    TableName.BEATS: Holders.of_pairs,
    TableName.SCORE: Holders.of_pairs,
    TableName.QUANTILE: Holders.of_bins,
    TableName.RANGE: Holders.of_bins,
    TableName.BELOW: Holders.of_bins,
    TableName.UNEXPLAINED: lambda _, table: np.array([UNLISTED]),
}


def _ranked(variable: Variable) -> Sequence[str]:
    assert isinstance(variable.kind, Ranking)
    return variable.kind.of


@dataclass(frozen=True, eq=False)
class Population:
    """Users of a spec.

    Attributes:
        spec: The spec.
        differ: Whether users who choose another level of privacy hold other values.
    """

    spec: CollectionSpec
    differ: bool = False

    @cached_property
    def protocol(self) -> LdpProtocol:
        """The protocol of the spec."""
        return build_protocol(self.spec)

    @cached_property
    def _levels(self) -> dict[str, float]:
        """The share of users with each level of privacy; empty if there are none."""
        levels = getattr(self.spec.mechanism, "levels", None) or {}
        return {name: level.share for name, level in levels.items()}

    @cached_property
    def _holders(self) -> list[list[Holders]]:
        """The users of each level of privacy, or all of them, by variable."""
        levels = range(len(self._levels) or 1)
        variables = self.spec.variables.values()
        return [[Holders(variable, level if self.differ else 0) for variable in variables] for level in levels]

    def symbols(self, rng: Generator, n: int) -> Values:
        """Draw n users, and encode what they hold."""
        if not self._levels:
            columns = [holders.hold(rng, n) for holders in self._holders[0]]
            return np.asarray(self.protocol.encoding.encode(columns, rng))
        chosen, found = rng.multinomial(n, list(self._levels.values())), []
        for number, (level, count) in enumerate(zip(self._levels, chosen, strict=True)):
            columns = [holders.hold(rng, int(count)) for holders in self._holders[number]]
            found.append(self.protocol.at(level).encoding.encode(columns, rng))
        return np.asarray(rng.permutation(np.concatenate(found)))

    def truth(self, table: Table) -> Floats | None:
        """Return what a table estimates; see ``Holders.truth``. The attributes of a record are independent."""
        names = list(self.spec.variables)
        attributes = [names.index(each) for each in table.of if each in names]
        if table.name is TableName.GIVEN:
            of = self._holders[0][attributes[1]]
            return np.tile(of.shares, len(table.values) // of.size)
        if len(attributes) > 1:
            if table.name is not TableName.SHARE:
                return None
            return np.asarray(reduce(np.multiply.outer, [self._holders[0][each].shares for each in attributes]).ravel())
        (at,) = attributes or (0,)
        level = next((position for position, name in enumerate(self._levels) if name in table.of), None)
        if level is not None or not self._levels:
            return self._holders[level or 0][at].truth(table)
        parts = [self._holders[number][at].truth(table) for number in range(len(self._levels))]
        truths = [part for part in parts if part is not None]
        return np.asarray(list(self._levels.values()) @ np.array(truths)) if truths else None

    def shares(self, attribute: str) -> Floats:
        """Return the shares of the values of a variable; see ``Holders.shares``."""
        at, odds = list(self.spec.variables).index(attribute), list(self._levels.values()) or [1.0]
        return np.asarray(odds @ np.array([self._holders[number][at].shares for number in range(len(odds))]))
