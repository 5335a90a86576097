"""A lower bound on epsilon, from reports of two values: payloads that are likelier under one of them, and how much.

Sources: Jagielski, Ullman & Oprea, "Auditing Differentially Private Machine Learning: How Private is Private SGD?"
(NeurIPS 2020), for the two Clopper-Pearson intervals; Nasr et al., "Tight Auditing of Differentially Private Machine
Learning" (USENIX Security 2023). Here the reports are those of local differential privacy, so no training is repeated.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Self, cast

import numpy as np

from uldp.mechanisms.inference.goodness_of_fit import Check, chi_square, support_matrices
from uldp.mechanisms.kernels.intervals import clopper_pearson
from uldp.mechanisms.laws.channel import Channel
from uldp.mechanisms.protocol.mechanism import Guarantee, Mechanism
from uldp.mechanisms.strings.string_mechanism import StringMechanism
from uldp.schemas.arrays import Counts, Floats, Mask, Payloads, Symbols

#: The distribution of the symbols of a device, shape (|Z|,); or its symbol, if strings are too many for that, and of
#: sets of strings its symbols as floats, shape (l,).
Inputs = Floats | int

#: The code of a payload that no sensitive symbol can produce, of which nothing is promised.
UNPROTECTED = -1
# As many sets of payloads of one order are tried.
_SETS = 64
# The codes of a part of strata are below this.
_OF_PART = 1 << 40


class Bound(NamedTuple):
    """What reports of two values show."""

    epsilon: float  # epsilon is at least this, with the coverage that was asked for; 0 if the reports show nothing
    likelier: float  # of the reports under the value that makes the chosen payloads likelier, the share that has one
    rarer: float  # that share under the other value


class Told(NamedTuple):
    """What n payloads say about two values."""

    codes: Counts  # shape (ways, n): a code of 0 or more for each way to tell payloads apart; or ``UNPROTECTED``
    #: Shape (n,): positive if the payload is likelier under the first value, and negative under the other.
    leaning: Counts

    @classmethod
    def of(cls, one: Counts, other: Counts, unprotected: Mask | bool = False) -> Self:
        """Tell payloads apart by supports of two values, below 2^16: the difference decides the likelihood ratio."""
        codes = np.where(unprotected, UNPROTECTED, (one - other << 16) + one + (1 << 32))
        return cls(codes[np.newaxis], one - other)

    def together(self, rows: Symbols) -> Counts:
        """Return codes of m sequences of reports, shape (m, times), by how far they lean together; shape (1, m)."""
        sums = self.leaning[rows].sum(axis=1) + (1 << 32)
        return np.where((self.codes[0, rows] == UNPROTECTED).any(axis=1), UNPROTECTED, sums)[np.newaxis]


def lower_bound(one: Counts, other: Counts, coverage: float = 0.95) -> Bound:
    """Bound epsilon from below, by the reports of two values.

    For each set S of payloads that a sensitive value can produce, Pr(S | x) <= e^epsilon Pr(S | x'). One half of the
    reports chooses S, and which of the values is x. The other half bounds both probabilities by Clopper and Pearson,
    each with ``(1 - coverage) / 2``. So the bound is above the truth in at most 1 - coverage of all runs, however S was
    chosen.
    """
    number, members, swapped = _chosen(one[:, ::2], other[:, ::2], coverage)
    likely, rare = (np.isin(codes[number, 1::2], members) for codes in ((other, one) if swapped else (one, other)))
    found = _epsilon(likely.sum(keepdims=True), len(likely), rare.sum(keepdims=True), len(rare), coverage)
    return Bound(max(float(found[0]), 0.0), float(likely.mean()), float(rare.mean()))


def _chosen(one: Counts, other: Counts, coverage: float) -> tuple[int, Symbols, bool]:
    """Return the set with the best bound: its way, its codes, and whether it is likelier under ``other``."""
    best, chosen = -math.inf, (0, np.zeros(0, np.int64), False)
    for number, pair in enumerate(zip(one, other, strict=True)):
        codes = np.unique(np.concatenate(pair))
        codes = codes[codes != UNPROTECTED]
        if not len(codes):
            continue
        sizes = np.unique(np.geomspace(1, len(codes), _SETS).astype(np.int64))
        # One half of these reports orders the codes, and the other chooses how many: or the set would fit chance.
        halves = [(_counts(codes, of[::2]), _counts(codes, of[1::2]), len(of[1::2])) for of in pair]
        for swapped, ((x, later_x, n), (y, later_y, m)) in enumerate([halves, halves[::-1]]):
            # By the ratio of their counts, the largest first; and as they are, in both directions.
            ascending = np.arange(len(x))
            for order in (np.argsort(-(x + 0.5) / (y + 0.5), kind="stable"), ascending, ascending[::-1]):
                of_x, of_y = (np.cumsum(later[order])[sizes - 1] for later in (later_x, later_y))
                epsilons = _epsilon(of_x, n, of_y, m, coverage)
                if epsilons.max() > best:
                    best = float(epsilons.max())
                    chosen = number, codes[order[: sizes[epsilons.argmax()]]], bool(swapped)
    return chosen


def _counts(codes: Counts, found: Counts) -> Counts:
    """Return how often each of some ascending codes was found, where others may be found too."""
    known = found[found != UNPROTECTED]
    return np.bincount(np.searchsorted(codes, known), minlength=len(codes))


def _epsilon(x: Counts, n: int, y: Counts, m: int, coverage: float) -> Floats:
    """Return the logarithms of the least ratio of probabilities of which one gave x of n, and the other y of m."""
    low, high = clopper_pearson(x, n, coverage)[0], clopper_pearson(y, m, coverage)[1]
    with np.errstate(divide="ignore"):
        return cast(Floats, np.log(low / high))


def told(mechanism: Mechanism, x: Inputs, other: Inputs, payloads: Payloads) -> Told:
    """Tell n possible payloads apart by what they say about two values, each given as its ``Inputs``.

    - Symbols, if the mechanism knows their law: the payload itself, and its place in the order of likelihood ratios.
    - Supports: which of both symbols, or sets of symbols, a report supports. The likelihood ratio of bits, sets and
      hashes depends on nothing else.
    - Strings, and sets of them: at how many positions of each a report supports it.
    - Strata: the part, and within it as above.
    - Any other mechanism: the signs of the cells of both symbols.

    Of a mechanism with a permanent response, that of one report counts.
    """
    mechanism = mechanism.bare
    if mechanism.parts:
        return _of_strata(mechanism, x, other, payloads)
    if not mechanism.few_symbols:
        of_strings = cast(StringMechanism, mechanism)
        own = (each if isinstance(each, int) else each.astype(np.int64) for each in (x, other))
        one, two = (of_strings.positions_supported(each, payloads) for each in own)
        return Told.of(one, two)
    r, s = cast(Floats, x), cast(Floats, other)
    of_r, of_s = mechanism.law(r), mechanism.law(s)
    if of_r is not None and of_s is not None:
        # By their number, and by their place in the order of likelihood ratios: those of one size, but for rounding.
        exact, protected = _ratios(of_r, of_s)
        ratios = np.round(exact, 9)
        codes = np.stack([np.arange(len(of_r)), np.unique(ratios, return_inverse=True)[1]])
        return Told(np.where(protected, codes, UNPROTECTED)[:, payloads], np.sign(ratios).astype(np.int64)[payloads])
    symbols = [np.flatnonzero(each) if mechanism.held > 1 else np.array([each.argmax()]) for each in (r, s)]
    return _of_supports(mechanism, symbols, payloads)


def promised(mechanism: Mechanism, x: Inputs, other: Inputs, guarantee: Guarantee) -> float | None:
    """Return the epsilon that one report promises to devices that hold one of two values; None without privacy.

    It is that of the guarantee to them. Where that is only the largest of all pairs, as with distances, groups of
    values or zones behind one tag, it is the largest log-likelihood ratio that the mechanism has between these two. It
    is 0 for values with one symbol, as those behind one tag.
    """
    mechanism, most = mechanism.bare, guarantee.epsilon
    if most is None:
        return None
    if np.array_equal(x, other):
        return 0.0
    if mechanism.parts:
        of_parts = zip(mechanism.parts, *(inputs_of_parts(mechanism, each) for each in (x, other)), strict=True)
        held = ((part, r, s) for part, r, s in of_parts if r is not None and s is not None)
        epsilons = (promised(part, r, s, part.guarantee) for part, r, s in held)
        return max(most if each is None else each for each in epsilons)
    if not guarantee.terms and mechanism.equal_pairs:
        return most
    r, s = cast(Floats, x), cast(Floats, other)
    of_r, of_s = mechanism.law(r), mechanism.law(s)
    if of_r is not None and of_s is not None:
        return min(most, float(np.abs(_ratios(of_r, of_s)[0]).max()))
    if mechanism.channel is not None and mechanism.channel.independent_bits:
        return min(most, _of_two_bits(mechanism.channel, int(r.argmax()), int(s.argmax())))
    return most


def _of_two_bits(channel: Channel, x: int, other: int) -> float:
    """Return the largest log-likelihood ratio of the bits of two symbols, whose other bits have one law."""
    p, q = channel.p[[x, other]], channel.q[[x, other]]
    with np.errstate(divide="ignore"):
        set_, cleared = np.log(p / q), np.log((1 - q) / (1 - p))
    return float((set_ + cleared[::-1]).max())


def _ratios(of_r: Floats, of_s: Floats) -> tuple[Floats, Mask]:
    """Return log-likelihood ratios, 0 for payloads of no sensitive value, and which payloads are of one."""
    protected = (of_r > 0) & (of_s > 0)
    ratios = np.zeros_like(of_r)
    ratios[protected] = np.log(of_r[protected] / of_s[protected])
    return ratios, protected


def _of_supports(mechanism: Mechanism, held: Sequence[Symbols], payloads: Payloads) -> Told:
    """Tell reports apart by which of two values, or any of two sets, they support: a cell is positive."""
    supported, unprotected = np.zeros((2, len(payloads)), np.int64), np.zeros(len(payloads), np.bool_)
    start = 0
    for cells in support_matrices(mechanism, payloads):
        block = slice(start, start + len(cells))
        for at, symbols in enumerate(held):
            # A design has one more input, of the symbols outside of it.
            supported[at, block] = (cells[:, symbols[symbols < cells.shape[1]]] > 0).any(axis=1)
        if mechanism.sensitive is not None:
            unprotected[block] = cells[:, ~mechanism.sensitive].any(axis=1)
        start += len(cells)
    return Told.of(supported[0], supported[1], unprotected)


def _of_strata(strata: Mechanism, x: Inputs, other: Inputs, payloads: Payloads) -> Told:
    n = len(payloads)
    codes, leaning = np.full((2, n), UNPROTECTED, dtype=np.int64), np.zeros(n, np.int64)
    of_parts = zip(
        strata.split_payloads(payloads), inputs_of_parts(strata, x), inputs_of_parts(strata, other), strict=True
    )
    for (number, rows, own), one, two in of_parts:
        if len(rows) and one is not None and two is not None:
            found = told(strata.parts[number], one, two, own)
            codes[:, rows] = np.where(found.codes == UNPROTECTED, UNPROTECTED, found.codes + number * _OF_PART)
            leaning[rows] = found.leaning
    return Told(codes, leaning)


def inputs_of_parts(strata: Mechanism, inputs: Inputs) -> list[Inputs | None]:
    """Return the inputs of the devices of each part; None if no device has this part."""
    if not strata.few_symbols:
        return [int(symbol) for symbol in cast(Floats, inputs)]
    of_parts = zip(strata.parts, np.split(cast(Floats, inputs), strata.first_symbols[1:]), strict=True)
    return [part.held * own / own.sum() if own.any() else None for part, own in of_parts]


def strings_of_parts(strata: Mechanism, symbols: Symbols, payloads: Payloads) -> Iterator[Check]:
    """Test the drawn parts by their shares, and the payloads of each by its own string or set, (parts, l)."""
    split = list(strata.split_payloads(payloads))
    counts = np.array([len(rows) for _, rows, _ in split])
    yield chi_square("drawn parts", strata.noun, counts, strata.shares)
    for number, _, own in split:
        part = cast(StringMechanism, strata.parts[number].bare)
        if len(own):
            for check in part.string_checks(symbols[number], own):
                yield replace(check, name=f"{check.name}, of {strata.noun} {number}")
