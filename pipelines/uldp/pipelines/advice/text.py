"""Advice as text: a table, and the spec to paste."""

import textwrap
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

import yaml

from uldp.pipelines.advice.question import Question
from uldp.pipelines.advice.ranking import Advice, LeftOut
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.families import mechanism_names
from uldp.schemas.specs.mechanism_family import family

#: A mechanism whose error is within this part of the least is as good.
_SAME = 0.02
_HEADINGS = ("mechanism", "epsilon", "users", "l1", "l2", "± 95 %", "bytes", "draws", "forged", "kept")
_HEADINGS_OF_STRINGS = ("mechanism", "epsilon", "users", "found", "error", *_HEADINGS[5:])
_ERRORS = """\
l1, l2: expected distance of the published shares, by auto, from the truth; ± 95 %: half of an interval, the mean over
values; """
_ERRORS_OF_STRINGS = """\
found: half of the strings with this share are found; error: standard error of the share of a rare string; ± 95 %: half
of its interval; """
_MEANINGS = """\
bytes: of a payload at the most; draws: random numbers of a device for a report; forged: the users for whom a
forged report counts, so 1 % of forged reports move a share by up to so many points; kept: whether lasting_epsilon
bounds all reports of a value, and "links" if the response that a device keeps is almost a name. Without
lasting_epsilon, the epsilons of a user's reports add up; with it, those of the user's values."""


def advice_text(question: Question, ranked: Sequence[Advice], left_out: Sequence[LeftOut]) -> str:
    """Return the table, why mechanisms are left out, and the best one's spec; ValueError if none suits."""
    reasons = _reasons(left_out)
    if not ranked:
        raise RequestError("\n".join(["no mechanism suits; ask for a larger error, or give more users", *reasons]))
    truth = "shares in the ratio of 1, 1/2, 1/3, ..." if question.truth is None else str(question.truth)
    strings = question.kind.takes_candidates
    table = _aligned([_HEADINGS_OF_STRINGS if strings else _HEADINGS, *map(_cells, ranked)])
    meanings = textwrap.wrap(f"{_ERRORS_OF_STRINGS if strings else _ERRORS}{_MEANINGS}".replace("\n", " "), 120)
    lines = [*([] if strings else [f"truth: {truth}", ""]), *table, "", *meanings, *reasons]
    lines += _not_ranked() if question.kind.listed else []
    best = ranked[0]
    near = [each for each in ranked[1:] if _as_good(each, best) and each.payload < best.payload]
    if near:
        least = min(near, key=lambda each: each.payload)
        lines.append(
            f"{least.mechanism} is within 2 % of {best.mechanism}, with a payload of {least.payload:,} in place of"
            f" {best.payload:,} bytes"
        )
    written = yaml.safe_dump(best.spec, sort_keys=False, default_flow_style=None, allow_unicode=True, width=100)
    return "\n".join([*lines, "", f"# {best.mechanism}, the best of these; check it with uldp check", written.rstrip()])


def _reasons(left_out: Sequence[LeftOut]) -> list[str]:
    """Return a line for each reason to leave mechanisms out."""
    names = defaultdict[str, list[str]](list)
    for each in left_out:
        names[each.reason].append(each.mechanism)
    return [
        f"{', '.join(those)} {'is' if len(those) == 1 else 'are'} left out: {reason}" for reason, those in names.items()
    ]


def _not_ranked() -> list[str]:
    """Return lines that say why the other mechanisms of a spec are not compared."""
    left_out = [name for name in mechanism_names() if family(name).not_ranked]
    grouped = groupby(left_out, key=lambda name: family(name).not_ranked)
    reasons = (f"{' and '.join(names)} ({reason})" for reason, names in grouped)
    return textwrap.wrap(f"not ranked: {', '.join(reasons)}", 120)


def _as_good(each: Advice, best: Advice) -> bool:
    return (
        each.errors.l1 <= best.errors.l1 * (1 + _SAME)
        and each.users <= best.users * (1 + _SAME)
        and each.epsilon <= best.epsilon * (1 + _SAME)
    )


def _cells(advice: Advice) -> tuple[str, ...]:
    errors = advice.errors
    return (
        advice.mechanism,
        f"{advice.epsilon:.4g}",
        f"{advice.users:,}",
        f"{errors.l1:.3g}",
        f"{errors.l2:.3g}",
        f"{errors.half_width:.2g}",
        f"{advice.payload:,}",
        f"{advice.draws:,}",
        f"{advice.weight:.3g}",
        advice.kept,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
