"""The walk down the prefixes of strings: which strings may be frequent, from the reports about prefixes alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from uldp.mechanisms.strings.cohort_channel import CohortChannel
from uldp.mechanisms.strings.cohorts import OTHER, of_length
from uldp.mechanisms.strings.screening import screen
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Counts, Symbols

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
