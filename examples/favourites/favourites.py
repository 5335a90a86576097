"""Favourites: each user names the few that she likes most of many candidates, in order.

The score of a candidate is 1 for the first of ``at_most`` places, less by 1/at_most for each later one, and 0 for a
user who does not name it. This is Borda's count of ballots that name a few.
"""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, cast

import numpy as np

from uldp.mechanisms import Encoding, Held, LdpProtocol, Randomness, SetDecoder, SetEncoding, SetSelection, of_sets
from uldp.schemas import PrivateSpec, Sets, Table, Variable
from uldp.schemas.arrays import Counts, Floats, Symbols, Values


class Favourites(Sets):
    """The key ``favourites`` of ``domain``: candidates, in ``of``, and ``at_most``, how many a device names."""

    name: ClassVar = "favourites"
    holds: ClassVar = "favourites"
    one: ClassVar = "list of favourites"
    unit: ClassVar = "candidates"
    percent: ClassVar = "% of the score if all users named it first,"
    heading: ClassVar = "Candidates"
    compared: ClassVar = "candidates, or numbers of places,"
    columns: ClassVar = ("favourites",)
    alone: ClassVar = ()
    separators: ClassVar = (">",)

    @property
    def text(self) -> str:
        """What a device holds."""
        return f"lists of {self.values.size:,} candidates, of which a device reports the first {self.at_most:,}"

    @property
    def extent(self) -> str:
        """How large the domain is."""
        return f"{self.values.size:,}, the first {self.at_most:,} of each list"

    def read(self, text: str) -> tuple[int, ...]:
        """Return the candidates of a text such as ``b>a``, the first one first."""
        named = [self.values.read_value(label) for label in text.split(">")] if text else []
        if len(set(named)) < len(named):
            raise ValueError("the list has a candidate twice; remove one")
        return tuple(named)

    def check(self, value: object, attribute: str) -> tuple[int, ...]:
        """Return the indices of candidates that a program gives, the first one first."""
        if not isinstance(value, list | tuple):
            raise TypeError(f"the value is a {type(value).__name__}, not a list of candidates")
        super().check(value, attribute)
        return tuple(value)

    @property
    def quantities(self) -> tuple[object, ...]:
        """The candidates, and the number of places, on which scores depend too."""
        return *super().quantities, self.at_most


class FavouritesEncoding(Encoding):
    """Holds the candidate at place i of l with the probability (l - i)/l, so that its mean is its score.

    A list of more than l candidates is cut to its first l. The draws are before the mechanism, and spend no epsilon.
    """

    def __init__(self, size: int, held: int) -> None:
        self._size, self._held, self._sets = size, held, SetEncoding(size, held)

    def encode(self, columns: Sequence[Held], randomness: Randomness) -> Symbols:
        """Return the l symbols of each device, shape (n, l), of candidates and of dummies."""
        (column,) = columns
        drawn = randomness.integers(0, self._held, (len(column.tags), self._held))
        lists = self._cut(column)
        thinned = np.where(drawn < self._held - np.arange(self._held), lists, -1)
        return np.asarray(self._sets.encode([Held(thinned, column.tags)], randomness), dtype=np.int64)

    def law(self, columns: Sequence[Held], size: int) -> Floats:
        """Return how probably one device holds each symbol; that it holds dummy j is that of l - 1 - j or fewer."""
        (named,), scores = self._cut(columns[0]), 1 - np.arange(self._held) / self._held
        r, numbers = np.zeros(size), np.ones(1)
        for candidate, score in zip(named.tolist(), scores.tolist(), strict=True):
            if candidate >= 0:
                r[candidate] = score
                numbers = np.convolve(numbers, [1 - score, score])
        numbers = np.append(numbers, np.zeros(self._held + 1 - len(numbers)))
        r[self._size :] = numbers.cumsum()[self._held - 1 :: -1]
        return r

    def _cut(self, column: Held) -> Values:
        """Return the first l candidates of each list, shape (n, l), with -1 behind them."""
        lists = cast(Values, column.values)[:, : self._held]
        return np.pad(lists, ((0, 0), (0, self._held - lists.shape[1])), constant_values=-1)


class ScoreDecoder(SetDecoder):
    """Reads support counts of candidates and dummies: the share that a candidate has in the mean is its score."""

    one = "candidate"

    def tables(self, cells: Counts, n: int, estimator: str, repeats: float = 0.0) -> tuple[Table, ...]:
        """Return the table of scores; the number of held symbols says nothing of lists."""
        return super().tables(cells, n, estimator, repeats)[:1]


class FavouritesSpec(PrivateSpec):
    """Subset selection for favourites."""

    title = "subset selection for favourites"
    domain_kind = "favourites"
    not_ranked = "for favourites"
    largest_size = 10_000

    name: Literal["favourites-ss"]

    def protocol(self, variable: Variable) -> LdpProtocol:
        """Build all steps.

        Guarantee: one report is epsilon-LDP for any two lists, whatever their lengths: any two sets of l symbols are
        what ``SetSelection`` protects, and a list is a mixture of them.
        """
        size, held = variable.size, variable.kind.held

        def build(epsilon: float) -> SetSelection:
            return SetSelection(size + held, epsilon, held)

        return of_sets(variable, self, build, FavouritesEncoding(size, held), partial(ScoreDecoder, items=size))
