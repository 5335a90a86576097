"""The law of the tests: each published number of each mechanism keeps the laws of ``laws_of_numbers``.

A seeded sample runs in each run, and the whole grid in the nightly one. A statistic that breaks a law is in ``FAULTS``,
and nowhere else: its tests are expected to fail, so that the change that mends it removes its row.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.random import default_rng

from tests.mechanisms.gathered_numbers import Gathered, of_each_report
from tests.mechanisms.laws_of_numbers import Figures, Setting, judged, measure, names, population, settings

#: The windows of a setting, where reports and values are few: of the whole grid, and of the sample.
WINDOWS, FEWER = 200, 100
#: Reports of which cumulants are simulated.
REPORTS = 400_000
#: The settings of each run, one of a protocol at the most.
SAMPLE = {
    setting.name: setting
    for setting in (
        Setting("rr", 4.0, 1_000),
        Setting("oue of 40 values", 0.5, 1_000),
        Setting("urr of 40 values", 4.0, 1_000),
        Setting("urap with a tag", 0.5, 1_000),
        Setting("set-ss of 60 keys", 8.0, 100),
        Setting("set-olh with sizes", 4.0, 1_000),
        Setting("metric on a grid", 4.0, 100),
        Setting("marginals with a permanent response", 4.0, 100),
        Setting("duchi with a permanent response", 0.5, 1_000),
        Setting("cohort-olh", 4.0, 1_000),
        Setting("levels that differ", 0.5, 1_000),
    )
}


class Fault(NamedTuple):
    """A statistic that breaks a law.

    Attributes:
        statistic: Its name.
        why: What is wrong with it.
        names: The protocols under which it breaks a law somewhere in the grid.
    """

    statistic: str
    why: str
    names: tuple[str, ...]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "beats",
        "a pair without reports has the value one half with the interval 0 to 1, which is no estimate",
        ("pairs of 32 candidates",),
    ),
)


def cases(of: Iterable[str]) -> Iterator[Any]:
    """Yield a case for the statistics of each protocol that keep the laws, and one for each that breaks one."""
    for name in of:
        mine = [fault for fault in FAULTS if name in fault.names]
        group = pytest.mark.xdist_group(f"numbers of {name}")  # they share what is measured
        broken = {fault.statistic for fault in mine}
        yield pytest.param(name, lambda each, broken=broken: each not in broken, id=name, marks=group)
        for fault in mine:
            expected = pytest.mark.xfail(strict=True, reason=fault.why)
            alone = fault.statistic
            marks = [group, expected]
            yield pytest.param(name, lambda each, alone=alone: each == alone, id=f"{name}: {alone}", marks=marks)


@cache
def measured(setting: Setting, windows: int) -> dict[str, Figures]:
    return measure(setting, windows)


def broken(of: Iterable[Setting], which: Any, windows: int) -> list[str]:
    """Return what breaks a law, of some statistics in some settings."""
    return [
        f"{setting}: {statistic}: {figures}"
        for setting in of
        for statistic, figures in measured(setting, windows).items()
        if figures.broken and which(statistic)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "which"), list(cases(SAMPLE)))
def test_a_sample_of_numbers_keeps_the_laws(name: str, which: Any) -> None:
    assert not broken([SAMPLE[name]], which, FEWER)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "which"), list(cases(names())))
def test_numbers_keep_the_laws(name: str, which: Any) -> None:
    assert not broken(settings(name), which, WINDOWS)


def test_faults_name_what_there_is() -> None:
    for fault in FAULTS:
        assert set(fault.names) <= set(names())
    of = [(fault.statistic, name) for fault in FAULTS for name in fault.names]
    assert len(of) == len(set(of))


def test_each_protocol_has_each_setting() -> None:
    missing = {(each.name, each.epsilon) for name in names() for each in settings(name) if not population(*each[:2])}
    # Of a budget below .61 hybrid sends the bits of duchi alone, and above 8 the blocks: see its spec.
    assert missing == {
        (name, epsilon) for name in ("hybrid", "hybrid with a permanent response") for epsilon in (0.5, 8.0)
    }


def honest(windows: int, entries: int, *, shift: float = 0.0, claimed: float = 1.0, slack: float = 0.0) -> Gathered:
    """Estimates that are normal with the standard deviation 1, in the setting of ``shift``, and their intervals."""
    rng, gathered = default_rng(7), Gathered()
    for values in rng.normal(shift, 1, (windows, entries)):
        half = 1.959964 * claimed
        numbers = {"values": values + slack, "unbiased": values, "low": values - half, "high": values + half}
        gathered.add(
            [str(entry) for entry in range(entries)],
            truth=np.zeros(entries),
            stderr=np.full(entries, claimed),
            p_value=rng.random(entries) ** (1 / claimed),
            **numbers,
        )
    return gathered


@pytest.mark.parametrize("entries", [1, 8, 300])
def test_what_is_as_it_says_breaks_no_law(entries: int) -> None:
    figures = judged(honest(WINDOWS, entries))
    assert figures.broken == ()
    assert figures.mean == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("entries", [1, 8])
@pytest.mark.parametrize(
    ("wrong", "laws"),
    [
        ({"shift": 0.5}, ("bias",)),
        ({"claimed": 0.55}, ("stderr", "least", "mean")),
        ({"claimed": 1.4}, ("stderr",)),
        ({"slack": 3.0}, ("inside",)),
    ],
    ids=str,
)
def test_what_is_wrong_breaks_its_law(entries: int, wrong: dict[str, float], laws: tuple[str, ...]) -> None:
    assert set(laws) <= set(judged(honest(WINDOWS, entries, **wrong)).broken) <= {*laws, "alarms"}


def test_alarms_of_what_is_so_break_their_law() -> None:
    gathered = Gathered()
    for p_value in default_rng(8).random(WINDOWS) * 0.3:
        gathered.add(["whole"], p_value=np.array([p_value]))
    assert judged(gathered).broken == ("alarms",)


@pytest.mark.nightly
@pytest.mark.parametrize("name", names())
def test_cumulants_of_reports_are_those_of_the_law(name: str) -> None:
    laws = pytest.importorskip("uldp.mechanisms.laws")
    of = population(name, 4.0)
    assert of is not None
    estimates = of_each_report(of, REPORTS, default_rng(10))
    w = default_rng(9).normal(size=estimates.shape[1])
    score = estimates @ w
    _, variance, third, _ = laws.law_of(of.protocol).one(w, estimates.mean(axis=0))
    central = {power: float(((score - score.mean()) ** power).mean()) for power in (2, 3, 4, 6)}
    # The variances of sample moments: Kendall & Stuart, "The Advanced Theory of Statistics", volume 1, (10.9).
    of_variance = central[4] - central[2] ** 2
    of_third = central[6] - central[3] ** 2 - 6 * central[4] * central[2] + 9 * central[2] ** 3
    assert abs(central[2] - variance) < 4 * np.sqrt(of_variance / REPORTS)
    assert abs(central[3] - third) < 4 * np.sqrt(of_third / REPORTS)
