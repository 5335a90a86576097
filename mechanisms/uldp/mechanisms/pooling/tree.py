"""The design of a tree: each part counts the values in blocks of neighbours, of another width.

Sources: Hay, Rastogi, Miklau & Suciu, "Boosting the Accuracy of Differentially Private Histograms Through Consistency"
(VLDB 2010), for least squares over a tree; Cormode, Kulkarni & Srivastava, "Answering Range Queries Under Local
Differential Privacy" (VLDB 2019), for trees of reports.

Let S_v and T_v be the sums over the leaves below the node v of the solution for the weights below it, for the right
side 1 and for g. The weight w_v of the node adds w_v 1 1^T on its leaves. So by Sherman and Morrison's formula, with
a_v = 1/(1 + w_v S_v), these sums become s_v = a_v S_v and t_v = a_v T_v for the node's own parent, and a number l that
is taken from g above the node becomes a_v (l + w_v T_v) below it. One pass up and one pass down solve the equations, in
a number of steps that is linear in the number of leaves, whether or not it is a power of the branching factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from uldp.mechanisms.pooling.pooled_linear import Design, Solve
from uldp.schemas.arrays import Floats, Mask, Symbols

# The active set of most windows is found in fewer than 20 rounds. After so many without fewer wrong signs, one leaf
# changes sides at a time, which ends.
_PATIENCE, _ROUNDS = 4, 1_000


class Tree(Design):
    """Blocks of each of several widths, over leaves whose sum is 1.

    The width of a part is the number of leaves of its blocks: the widest first, and 1 for the last part. Each divides
    the one before. The last block of a part may be narrower. ValueError if the widths are none of a tree.
    """

    def __init__(self, leaves: int, widths: Sequence[int]) -> None:
        pairs = pairwise(widths)
        if not widths or widths[-1] != 1 or any(wide % narrow or wide == narrow for wide, narrow in pairs):
            raise ValueError(f"the widths of blocks must divide each other and end with 1, got {list(widths)}")
        self.size, self.widths = leaves, tuple(widths)

    @property
    def centre(self) -> Floats:
        return np.full(self.size, 1 / self.size)

    def spread(self, values: Floats) -> list[Floats]:
        sums = [values]
        for level in range(len(self.widths) - 2, -1, -1):
            sums.append(self._up(sums[-1], level))
        return sums[::-1]

    def gather(self, of_parts: Sequence[Floats]) -> Floats:
        total = of_parts[0]
        for level, own in enumerate(of_parts[1:], 1):
            total = self._down(total, level) + own
        return total

    def solve(self, weights: Sequence[Floats] | Floats) -> Solve:
        passes = _Passes.of(self, weights)
        return lambda g: passes.solution(g, passes.shift(g, 0.0))

    def nearest(self, weights: Sequence[Floats] | Floats, values: Floats) -> Floats:
        """See the base class; the leaves have the sum 1.

        Leaves are exchanged between those at 0 and the others until none has a wrong sign (Kim & Park, "Fast
        Nonnegative Matrix Factorization: An Active-Set-Like Method and Comparisons", SIAM Journal on Scientific
        Computing 33, 2011). A projection of the estimate of leaves would lose what the wide blocks know: its sums are
        biased, because it raises each leaf that noise has made negative.
        """
        free, fewest, patience = np.ones(self.size, dtype=np.bool_), self.size + 1, _PATIENCE
        passes, column = _Passes.of(self, weights), self.gather(self.weigh(weights, self.spread(values[:, np.newaxis])))
        for _ in range(_ROUNDS):
            passes = _Passes.of(self, weights, free)
            slack = (column - passes.shift(column, 1.0))[:, 0]
            wrong = free != (slack > 0)
            count = int(wrong.sum())
            if not count:
                break
            patience = _PATIENCE if count < fewest else patience - 1
            fewest = min(fewest, count)
            if patience <= 0:
                wrong &= np.arange(self.size) == np.flatnonzero(wrong)[-1]
            free = free ^ wrong
        found = np.maximum(passes.solution(column, passes.shift(column, 1.0))[:, 0], 0.0)
        return np.asarray(found / found.sum())

    def of_blocks(
        self, weights: Sequence[Floats] | Floats, numbers: Sequence[Floats], power: int, *, below: bool = False
    ) -> Floats:
        """Return for each leaf, or for the sum of all leaves before it, a sum over all blocks, shape (m,).

        It is that of the numbers of the blocks times powers of their weights in the solution: of their variances, the
        variance by independent blocks. A leaf depends on each of its blocks, on the sum of the blocks beside each of
        them, and on no others. So all sums take a number of steps that is linear in the number of leaves. Each part has
        one weight, and numbers of shape (blocks,). With ``below``, the sums are those of the leaves before each.
        """
        passes = _Passes.of(self, weights)
        of_sums = self._of_sums(passes, numbers, power)
        last = len(self.widths) - 1
        paths = [np.arange(self.size) // width for width in self.widths]
        # How the result moves with what is taken from the leaves below each block of the path.
        taken = [np.zeros(0)] * (last + 1)
        beside = [self._before(own, level) for level, own in enumerate(passes.own)]
        taken[last] = -(beside[last] if below else passes.own[last][:, 0])
        for level in range(last, 0, -1):
            a, left = passes.kept[level - 1][paths[level - 1], 0], beside[level - 1][paths[level - 1]]
            taken[level - 1] = taken[level] * a - (left if below else 0)
        moved, found = np.asarray(taken[0] / passes.whole[0]), np.zeros(self.size)
        for level, (own, path) in enumerate(zip(of_sums, paths, strict=True)):
            left = self._before(own[:, np.newaxis], level)[path] if below else np.zeros(self.size)
            around = own.sum() if level == 0 else self._up(own[:, np.newaxis], level - 1)[paths[level - 1], 0]
            found += moved**power * (around - own[path] - left) + (moved + 1) ** power * left
            if level == last:
                break
            weight, a, total = passes.weights[level], passes.kept[level][path, 0], passes.sums[level][path, 0]
            found += (weight * a * (moved * total - taken[level + 1])) ** power * numbers[level][path]
            moved = a * (taken[level + 1] * weight + moved)
        return np.asarray(found + (moved + (0 if below else 1)) ** power * numbers[last])

    def _of_sums(self, passes: "_Passes", numbers: Sequence[Floats], power: int) -> list[Floats]:
        """Return the sums of t_v of each block: over its own number and those of all blocks below it."""
        of_sums = [numbers[-1]]
        for level in range(len(self.widths) - 2, -1, -1):
            a, own = passes.kept[level][:, 0], (passes.weights[level] * passes.sums[level][:, 0]) ** power
            of_sums.append(a**power * (self._up(of_sums[-1][:, np.newaxis], level)[:, 0] + own * numbers[level]))
        return of_sums[::-1]

    def _up(self, values: Floats, level: int) -> Floats:
        """Sum over the blocks of the next part that are in each block of a part."""
        ratio = self.widths[level] // self.widths[level + 1]
        if spare := -len(values) % ratio:
            values = np.concatenate([values, np.zeros((spare, *values.shape[1:]))])
        return np.asarray(values.reshape(-1, ratio, *values.shape[1:]).sum(axis=1))

    def _down(self, values: Floats, level: int) -> Floats:
        """Repeat the number of each block of the part before for the blocks of a part that are in it."""
        blocks = -(-self.size // self.widths[level])
        return np.repeat(values, self.widths[level - 1] // self.widths[level], axis=0)[:blocks]

    def _before(self, values: Floats, level: int) -> Floats:
        """Return, for each block of a part, the sum of the blocks before it in the same block of the part before."""
        column = values[:, 0]
        sums = np.cumsum(column) - column
        if level == 0:
            return np.asarray(sums)
        ratio = self.widths[level - 1] // self.widths[level]
        return np.asarray(sums - np.repeat(sums[::ratio], ratio)[: len(sums)])


@dataclass(frozen=True, eq=False)
class _Passes:
    """The sums of the pass up that do not depend on the right side; each array has one column."""

    tree: Tree
    weights: list[float]  # w of each part
    sums: list[Floats]  # S of each part's blocks but the leaves
    kept: list[Floats]  # a of each part's blocks but the leaves
    own: list[Floats]  # s of each part's blocks
    whole: Floats  # S of all leaves, shape (1,)

    @classmethod
    def of(cls, tree: Tree, weights: Sequence[Floats] | Floats, free: Mask | None = None) -> "_Passes":
        """Build it; leaves that are not free are 0."""
        numbers = [float(weight) for weight in weights]
        leaves = np.full((tree.size, 1), 1 / numbers[-1])
        own, sums, kept = [leaves if free is None else leaves * free[:, np.newaxis]], [], []
        for level in range(len(numbers) - 2, -1, -1):
            sums.append(tree._up(own[-1], level))
            kept.append(1 / (1 + numbers[level] * sums[-1]))
            own.append(sums[-1] * kept[-1])
        return cls(tree, numbers, sums[::-1], kept[::-1], own[::-1], own[-1].sum(axis=0))

    def shift(self, g: Floats, total: float) -> Floats:
        """Return what is taken from each leaf of g, so that the solution has this sum; shape (m, j)."""
        t, sums = self.own[-1] * g, []
        for level in range(len(self.kept) - 1, -1, -1):
            sums.append(self.tree._up(t, level))
            t = sums[-1] * self.kept[level]
        taken = np.broadcast_to((t.sum(axis=0) - total) / self.whole, t.shape)
        for level, above in enumerate(sums[::-1]):
            taken = self.kept[level] * (taken + self.weights[level] * above)
            taken = self.tree._down(taken, level + 1)
        return taken

    def solution(self, g: Floats, taken: Floats) -> Floats:
        """Return the leaves, of shape (m, j)."""
        return self.own[-1] * (g - taken)


def widths_of(leaves: int, branching: int) -> tuple[int, ...]:
    """Return the widths of the blocks of a tree of this branching factor, without the root.

    >>> widths_of(100, 4)
    (64, 16, 4, 1)
    """
    widths = [1]
    while widths[-1] * branching < leaves:
        widths.append(widths[-1] * branching)
    return tuple(widths[::-1])


def blocks_of(leaves: int, widths: Sequence[int]) -> Symbols:
    """Return the number of blocks of each part."""
    return -(-leaves // np.array(widths, dtype=np.int64))
