"""The walk down the prefixes of strings: which strings may be frequent, from the reports about prefixes alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.strings.cohort_channel import Candidates, CohortCells, CohortChannel, sums_at
from uldp.mechanisms.strings.cohorts import OTHER, of_length
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Counts, Floats, Mask, Rows, Symbols

# The part of the cohorts at the end of each stage, and the part of the strings that it scores.
_STAGES = ((0.25, 1.0), (0.5, 0.5), (1.0, 0.2))
# With fewer cohorts or strings than this, all are scored by all cohorts.
_FEW_COHORTS, _FEW_STRINGS = 512, 1024
# A string this many standard errors above 0 is taken out of the cells.
_TAKEN_OUT = 4.5
# So many strings are taken out of the cells at the most, and so often the rest is scored again.
_MOST_TAKEN_OUT, _ROUNDS = 96, 3


class Screened(NamedTuple):
    """The best of the strings."""

    rows: Rows  # shape (k,): their positions among all, the largest share first
    values: Floats  # shape (k,): the estimates of their shares
    known: Floats  # the estimates of the shares of the known ones
    error: float  # the standard error of the share of a rare string


def screen(channel: CohortChannel, supports: Counts, symbols: Symbols, known: Symbols, most: int) -> Screened:
    """Return the strings with the largest shares.

    All strings are scored by a quarter of the cohorts; the better half of them by half of the cohorts; the best fifth
    by all. A string that all cohorts would place among the best thousandth is lost on the way with a probability of 5
    %. Strings with large shares make others look frequent, with which they collide. So what is found is fitted by least
    squares and taken out of the cells, and the rest is scored again. Other strings, of the ``known`` symbols, are taken
    out whatever their shares are.

    The channel has one hash function for each cohort, of which each report supports one bucket. The supports, shape
    (M, L), are the reports of each cohort that support each position.
    """
    cells = _Cells(channel, supports, symbols, known)
    kept, scores = np.arange(len(symbols)), np.zeros(len(symbols))
    few = channel.cohorts < _FEW_COHORTS or len(symbols) < _FEW_STRINGS
    begin, part = 0, 0.0
    for part_after, best in _STAGES[-1:] if few else _STAGES:
        if begin:
            order = np.argsort(-cells.shares(kept, scores, part), kind="stable")[: round(best * len(symbols))]
            kept, scores = kept[order], scores[order]
        end, part = round(part_after * channel.cohorts), part_after
        scores = scores + cells.scores(kept, begin, end)
        for _ in range(_ROUNDS):
            if not cells.take_out(kept, cells.shares(kept, scores, part), cells.error / math.sqrt(part)):
                break
            scores = cells.scores(kept, 0, end)
        begin = end
    shares = cells.shares(kept, scores, part)
    order = np.argsort(-shares, kind="stable")[:most]
    return Screened(kept[order], shares[order], cells.of_known, cells.error)


class _Cells:
    """The cells of a stratum, and what is taken out of them."""

    def __init__(self, channel: CohortChannel, supports: Counts, symbols: Symbols, known: Symbols) -> None:
        self._channel, self._symbols, self._known = channel, symbols, known
        self._cells = CohortCells(supports, supports.sum(axis=1))
        #: The standard error of the share of a rare string, by all cohorts.
        self.error = channel.error(self._cells.n)
        #: Shape (K,): which strings are taken out of the cells.
        self.taken: Mask = np.zeros(len(symbols), dtype=np.bool_)
        self._fit()

    def _fit(self) -> None:
        together = Candidates(self._channel, np.concatenate([self._known, self._symbols[self.taken]]))
        values = together.fit(self._cells)
        residuals = together.residuals(values, self._channel.corrected(self._cells))
        self._residuals = residuals.astype(np.float32)
        #: The fitted shares of the known strings, and of all that are taken out; those of others are 0.
        self.of_known, self._fitted = values[: len(self._known)], np.zeros(len(self.taken))
        self._fitted[self.taken] = values[len(self._known) :]

    def take_out(self, rows: Rows, values: Floats, error: float) -> bool:
        """Take further strings out of the cells whose shares are large; return whether there are any."""
        large = np.flatnonzero((values > _TAKEN_OUT * error) & ~self.taken[rows])
        room = max(_MOST_TAKEN_OUT - len(self._known) - int(self.taken.sum()), 0)
        large = large[np.argsort(-values[large], kind="stable")[:room]]
        if not len(large):
            return False
        self.taken[rows[large]] = True
        self._fit()
        return True

    def shares(self, rows: Rows, scores: Floats, part: float) -> Floats:
        """Return the estimated shares of the strings at ``rows``, for which a part of the cohorts has these scores."""
        return np.asarray(scores / (part * self._channel.unit) + self._fitted[rows])

    def scores(self, rows: Rows, begin: int, end: int) -> Floats:
        """Return the sums of the residuals at the positions of strings in some cohorts, shape of ``rows``."""
        return np.asarray(sums_at(self._channel, self._symbols[rows], [self._residuals[begin:end]], begin)[0])


# A whole string that all lengths together show this many standard errors above 0 is worth a test.
_LEAST_SCORE = 1.0


@dataclass(frozen=True)
class Walk:
    """Finds strings that may be frequent.

    At each length, all prefixes are scored that begin with a kept prefix of the length before; the best are kept. A
    string that has no more pieces stays, and each further length adds to its score.
    """

    spelling: Spelling
    longest: int  # the most bytes of a string
    channel: CohortChannel  # the law of the cells at each length
    lengths: tuple[int, ...]  # the numbers of pieces of the prefixes, ascending
    keep: int  # how many prefixes are kept at each length
    most: int  # how many strings are returned

    def run(self, levels: Sequence[Counts]) -> list[str]:
        """Return strings that may be frequent, the best first, from each length's supports, shape (M, L)."""
        prefixes, before = [""], 0
        ended: dict[str, list[float]] = {}
        for number, (length, supports) in enumerate(zip(self.lengths, levels, strict=True)):
            further = length - before
            children = {
                text: pieces
                for prefix in prefixes
                for text, pieces in self.spelling.following(prefix, further, self.longest)
                if text not in ended
            }
            texts = list(children)
            known = np.append(self._symbols(number, ended), OTHER)
            best = screen(self.channel, supports, self._symbols(number, texts), known, self.keep)
            for scores, value in zip(ended.values(), best.known.tolist(), strict=False):
                scores.append(value / best.error)
            kept = {texts[row]: value for row, value in zip(best.rows, best.values.tolist(), strict=True) if value > 0}
            prefixes = [text for text in kept if children[text] == further]
            whole = kept if length == self.lengths[-1] else kept.keys() - set(prefixes)
            ended |= {text: [kept[text] / best.error] for text in kept if text in whole}
            ended = dict(sorted(ended.items(), key=lambda item: -_joint(item[1]))[: self.most])
            before = length
        return [text for text, scores in ended.items() if _joint(scores) > _LEAST_SCORE]

    def _symbols(self, number: int, texts: Iterable[str]) -> Symbols:
        return np.array([of_length(number, text, self.longest) for text in texts], dtype=np.int64)


def _joint(scores: Sequence[float]) -> float:
    """Return independent scores in standard errors as one."""
    return sum(scores) / math.sqrt(len(scores))
