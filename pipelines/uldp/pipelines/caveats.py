"""Warnings about valid specs that probably do not say what their author means, and about results of such a spec."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from uldp.mechanisms.catalog import build_variable
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.inference.forecast import equal_shares, falling_shares
from uldp.mechanisms.mechanism import Mechanism, UniformNoise
from uldp.mechanisms.randomizers.input_discriminative import InputDiscriminativeEncoding
from uldp.mechanisms.randomizers.memoized import Memoized
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.pipelines.costs import costly
from uldp.schemas.pane import PaneHeader
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.lookalikes import alike, unseen
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.mistakes import ascii_quote
from uldp.schemas.specs.variable import Variable

#: A window with fewer reports has no estimate that is of use.
_FEW_REPORTS = 10
#: Up to so many of these windows may come from devices that were offline.
_FEW_WINDOWS = 100
#: The search for a number of users that suffices: the factor between two tries, and where it begins at the most.
_USERS_STEP, _MOST_USERS = 1.5, 1e10
#: Candidates with a smaller share than this are what a collection of strings is for.
_LARGE_SHARE = 0.1
#: Probabilities of bits that differ by less are those of one group.
_SAME = 1e-9
#: A line names so many labels.
_NAMED = 3
#: A budget above this protects hardly anybody.
_LARGE_EPSILON = 8.0


def caveats(spec: CollectionSpec, users: int) -> Iterator[str]:
    """Yield a line for each probable mistake in a spec, given the number of users who report in a window."""
    window = spec.window
    if window.early_every is not None and window.early_every > window.size:
        yield (
            f"window.early_every, {format_duration(window.early_every)}, is longer than the window, "
            f"{format_duration(window.size)}: no estimate comes early; make it shorter, or leave it out"
        )
    yield from costly(spec, users)
    yield from _large_budgets(spec)
    for attribute, variable in spec.variables.items():
        of = f"{attribute}: " if attribute else ""
        yield from (of + line for line in _caveats_of(variable, users, spec.estimators[0]))


def _large_budgets(spec: CollectionSpec) -> Iterator[str]:
    lasting = spec.mechanism.lasting_epsilon if isinstance(spec.mechanism, PrivateSpec) else None
    for key, epsilon, reports in (
        ("epsilon", spec.mechanism.epsilon, "one report"),
        ("lasting_epsilon", lasting, "all reports of one value together"),
    ):
        if epsilon is not None and epsilon > _LARGE_EPSILON:
            yield (
                f"mechanism.{key} is {epsilon:g}: a reader of {reports} has odds of up to e^{epsilon:g} = "
                f"{math.exp(epsilon):,.0f} to 1 between two values; {_LARGE_EPSILON:g} or less leaves a doubt"
            )


def _caveats_of(variable: Variable, users: int, estimator: str) -> Iterator[str]:
    """Yield a line for each probable mistake in one variable of a spec."""
    yield from _hard_to_see(variable)
    for tag in variable.tags:
        if _is_value(variable, tag.name):
            yield f"tag {tag.name} has the name of a value: nobody can tell them apart in results; rename the tag"
    n = max(round(variable.share * users), 1)
    protocol = build_variable(variable)
    decoder = protocol.decoder
    yield from _fingerprint(protocol.mechanism, n)
    if isinstance(protocol.mechanism, InputDiscriminativeEncoding) and np.ptp(protocol.mechanism.channel.q) < _SAME:
        yield (
            "the groups of idue gain nothing: all values are protected as by oue with the least epsilon; take oue, or"
            " fewer values with the least epsilon"
        )
    if (number := variable.domain.number) is not None:
        error, width = float(decoder.forecast(n)[0]), number.high - number.low
        if error > width / 10:
            yield (
                f"the expected error of the mean is {error:.3g} at n = {users:,}, in a range of {width:.3g}: take "
                f"{_two_digits(users * (10 * error / width) ** 2):,} users or more in a window, or a larger epsilon"
            )
    elif isinstance(decoder, CandidateDecoder):
        yield from _candidates(decoder, n, users / n)
    elif isinstance(decoder, PureDecoder):
        yield from _useless_shares(decoder, decoder.known(estimator), n, users / n)


def _hard_to_see(variable: Variable) -> Iterator[str]:
    """Yield lines for labels or candidates that nobody can see, or tell from one another."""
    kind, texts = ("candidate", variable.candidates) if variable.candidates else ("label", variable.names or ())
    pairs = [f"{ascii_quote(first)} and {ascii_quote(second)}" for first, second in alike(texts)]
    if pairs:
        yield (
            f"{kind}s that look like another and differ, {len(pairs):,} in all ({_some(pairs)}): reports of one value"
            " are counted apart; write it in one way, as devices do"
        )
    if odd := [ascii_quote(text) for text in unseen(texts)]:
        yield (
            f"{kind}s that are empty, begin or end with a space, or have characters that nobody sees, {len(odd):,} in"
            f" all ({_some(odd)}): remove what is not meant"
        )


def _some(texts: Sequence[str]) -> str:
    """Join the first texts, and say if there are more."""
    return ", ".join(texts[:_NAMED]) + (", ..." if len(texts) > _NAMED else "")


def _candidates(decoder: CandidateDecoder, n: int, users: float) -> Iterator[str]:
    """Yield a line if there are no candidates, or if n reports hardly find any.

    Args:
        decoder: The decoder of the candidates.
        n: The number of reports.
        users: The number of users for each of these reports.
    """
    if not decoder.names:
        yield "no candidates: reports are counted, but estimates need candidates; add them to the spec at any time"
    elif (least := decoder.least_found(n)) > _LARGE_SHARE:
        yield (
            f"a candidate is found only from a share of about {min(least, 1):.2g} on: take"
            f" {_two_digits(n * users * (least / _LARGE_SHARE) ** 2):,} users or more in a window, or a larger epsilon"
        )


def _fingerprint(mechanism: Mechanism, n: int) -> Iterator[str]:
    """Yield a line if n devices keep one of so many responses that theirs are almost as good as names."""
    if not isinstance(mechanism, Memoized) or not isinstance(mechanism.once, UniformNoise):
        return
    if mechanism.once.log_payloads > math.log(n):
        yield (
            f"a device sends the response that it keeps, unchanged, in {1 - mechanism.noise[0]:.0%} of its reports, and"
            f" there are more responses than users: a reader can link those of a device among {n:,} users,"
            " and sees that its value has changed; what the value is stays protected. Take a"
            " mechanism with fewer payloads, such as rr of few values, or leave out lasting_epsilon"
        )


def _useless_shares(decoder: PureDecoder, estimator: str, n: int, users: float) -> Iterator[str]:
    """Yield a line if n reports are expected to halve the error of a guess without reports, or less.

    Args:
        decoder: The decoder of the shares.
        estimator: The published estimator.
        n: The number of reports.
        users: The number of users for each of these reports.
    """
    truth, guess = (shares(decoder.channel.size) for shares in (falling_shares, equal_shares))
    blind = float(np.abs(decoder.pum.distribution(guess) - decoder.pum.distribution(truth)).sum())

    def error(n: int) -> float:
        return decoder.expected_l1(truth, n, estimator)

    if not blind or error(n) <= blind / 2:
        return
    # So many suffice for the unbiased estimate, whose error falls with their root. Others need fewer.
    enough = n * (decoder.channel.expected_l1(truth, n) / (blind / 2)) ** 2
    while enough < _MOST_USERS and error(int(enough / _USERS_STEP)) <= blind / 2:
        enough /= _USERS_STEP
    need = "more users than there are" if enough >= _MOST_USERS else f"{_two_digits(enough * users):,} users or more"
    yield (
        f"the expected l1 error of {estimator} is {error(n):.3g} at n = {round(n * users):,}, and that of equal shares,"
        f" a guess without reports, {blind:.3g}: take {need} in a window, fewer values, or a larger epsilon"
    )


def few_reports(panes: Sequence[PaneHeader]) -> str | None:
    """Return a line if most windows of a collection count few reports: a sender may have chosen their event times."""
    counted = [pane.n for pane in panes if pane.n]
    few = sum(n < _FEW_REPORTS for n in counted)
    if few <= max(_FEW_WINDOWS, len(counted) / 2):
        return None
    return (
        f"warning: {few:,} of {len(counted):,} windows count fewer than {_FEW_REPORTS} reports: windows are too short, "
        "or a sender has made up event times; take longer windows, or lower limits.max_age"
    )


def _is_value(variable: Variable, name: str) -> bool:
    try:
        variable.read_value(name)
    except ValueError:
        return False
    return True


def _two_digits(number: float) -> int:
    """Round a number up to two significant digits, and at least to a whole number.

    >>> _two_digits(10_401)
    11000
    """
    step = int(10 ** max(math.floor(math.log10(number)) - 1, 0))
    return math.ceil(number / step) * step
