"""A first spec from a few answers: what devices hold, how it is protected, and how often they report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from uldp.pipelines.advice.question import Question
from uldp.pipelines.advice.ranking import rank
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.budget import MAX_PERIOD
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration

#: Below this epsilon, one bit of a number has less error than a block of it; see docs/mechanisms.md on HM.
_ONE_BIT_BELOW = 1.2
#: The period of the budget, or the window if that is longer.
_PERIOD = timedelta(days=30)
#: Late reports are counted for this part of a window.
_LATE_PART = 6


@dataclass(frozen=True)
class Answers:
    """What somebody wants to collect."""

    collection: str  # the name of the collection
    values: Sequence[str]  # the values of which a device holds one; empty for a number
    sensitive: Sequence[str]  # those that are protected; empty for all
    number: tuple[float, float] | None  # the ends of the range of a number; None for values
    distribution: bool  # of a number, whether its distribution is asked for, and not its mean alone
    epsilon: float  # the budget of one report, in nats
    window: timedelta  # the length of a window
    reports: int  # how many reports a device may send in 30 days, or in a window if that is longer
    users: int  # the number of users who report in a window


def first_keys(answers: Answers, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return a spec's keys, with the mechanism of least simulated error; RequestError or SpecError if none fits."""
    keys: dict[str, Any] = {"collection": answers.collection, "version": 1}
    keys["domain"] = {"labels": [*answers.values]} if answers.number is None else {"number": _range(answers.number)}
    if answers.sensitive:
        keys["sensitive"] = [*answers.sensitive]
    rest = _rest(answers)
    keys["mechanism"] = _of_number(answers) if answers.number is not None else _best(keys | rest, answers, progress)
    keys |= rest
    CollectionSpec.parse(keys)
    return keys


def _range(ends: tuple[float, float]) -> Mapping[str, float]:
    return dict(zip(("low", "high"), (int(end) if end.is_integer() else end for end in ends), strict=True))


def _of_number(answers: Answers) -> dict[str, Any]:
    one_bit = not answers.distribution and answers.epsilon < _ONE_BIT_BELOW
    return {"name": "duchi" if one_bit else "block", "epsilon": answers.epsilon}


def _best(keys: Mapping[str, Any], answers: Answers, progress: Callable[[str], None]) -> dict[str, Any]:
    question = Question({"sensitive": "all", **keys}, Path(), None, answers.epsilon, answers.users, None)
    ranked, left_out = rank(question, progress)
    if not ranked:
        raise RequestError(f"no mechanism suits: {left_out[0].reason}" if left_out else "no mechanism suits")
    mechanism: dict[str, Any] = ranked[0].spec["mechanism"]
    return mechanism


def _rest(answers: Answers) -> dict[str, Any]:
    late = max(answers.window // _LATE_PART // timedelta(minutes=1), 1) * timedelta(minutes=1)
    period = min(max(_PERIOD, answers.window), MAX_PERIOD)
    return {
        "window": {"size": format_duration(answers.window), "allowed_lateness": format_duration(late)},
        "budget": {"epsilon": answers.epsilon * answers.reports, "every": format_duration(period)},
    }


def first_text(keys: Mapping[str, Any]) -> str:
    """Write the keys as the file of a spec, which says where each key is explained."""
    written = yaml.safe_dump(dict(keys), sort_keys=False, default_flow_style=None, allow_unicode=True, width=100)
    return (
        "# One version of one collection; docs/spec.md explains every key. Any change of domain, sensitive or\n"
        f"# mechanism is a new version, in a file of its own.\n{written}"
    )
