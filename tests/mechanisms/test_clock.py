"""Which times a ledger believes, by clocks that the tests set: observations, jumps of the clock, restarts."""

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.devices.clock import ClockError, Start, SystemClock, Uptime, checked_start
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import FileLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.schemas.errors import UldpError

DAY = 24 * HOUR
YEAR = 365 * DAY
PERIOD = 30 * DAY
SPEC = build.spec(mechanism={"name": "rr", "epsilon": 1.0}, budget={"epsilon": 4, "every": "30d"})


@dataclass
class SetClock:
    """A clock that a test sets, and the time that passes in truth."""

    ahead: int = 0
    passed: int = 0
    boot: str | None = "first"
    booted: int = 0

    def now(self) -> int:
        return START + self.passed + self.ahead

    def uptime(self) -> Uptime | None:
        return None if self.boot is None else Uptime(self.boot, self.passed - self.booted)


def reports(path: Path, clock: SetClock, off: int = 0, skew: timedelta | None = timedelta(hours=1)) -> int:
    """Report until a device that has just started refuses for want of budget, and return how often."""
    device, made = Device(SPEC, {}, ledger=FileLedger(path, skew=skew, clock=clock)), 0
    with suppress(BudgetExceededError):
        for made in range(10):  # noqa: B007
            device.report(1, clock.now() + off)
    return made


@pytest.mark.parametrize("off", [31 * DAY, 62 * DAY, -31 * DAY, HOUR + 1, -HOUR - 1, 10**17, -START // 1000 * 999])
def test_times_of_observations_buy_no_budget(off: int, tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    with pytest.raises(ClockError, match=r"^the time of the observation is [\d,]+ s (ahead of|behind) .*skew=None"):
        reports(path, clock, off)
    assert not path.exists()
    assert reports(path, clock) == 4
    with pytest.raises(ClockError):
        reports(path, clock, off)


@pytest.mark.parametrize("off", [HOUR, -HOUR])
def test_times_within_the_skew_are_believed(off: int, tmp_path: Path) -> None:
    assert reports(tmp_path / "ledger.json", SetClock(), off) == 4


def test_a_clock_that_is_set_ahead_buys_no_budget(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock) == 4
    before = path.read_bytes()
    for days in (31, 62):
        clock.ahead = days * DAY
        with pytest.raises(ClockError, match=rf"come {days * 86_400:,} s further than the time .*restart the machine"):
            reports(path, clock)
    assert path.read_bytes() == before
    clock.ahead, clock.passed = 0, 30 * DAY
    assert reports(path, clock) == 4


def test_a_restart_of_the_machine_begins_anew(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(ahead=-10 * DAY)
    assert reports(path, clock) == 4
    clock.ahead = 0
    with pytest.raises(ClockError):
        reports(path, clock)
    clock.boot, clock.booted, clock.passed = "second", HOUR, HOUR
    assert reports(path, clock) == 0
    assert json.loads(path.read_bytes())["start"] == ["first", START - 10 * DAY]  # a refusal writes nothing
    clock.passed += 30 * DAY
    assert reports(path, clock) == 4
    assert json.loads(path.read_bytes())["start"] == ["second", START + HOUR]


def test_a_machine_that_names_no_runs_is_believed(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(boot=None)
    assert reports(path, clock) == 4
    clock.ahead = 31 * DAY
    assert reports(path, clock) == 4
    assert json.loads(path.read_bytes())["start"] is None


def test_a_caller_may_say_how_far_times_are_off(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock, -2 * DAY, skew=timedelta(days=2)) == 4
    with pytest.raises(ClockError):
        reports(path, clock, -2 * DAY - 1, skew=timedelta(days=2))
    assert reports(path, clock, 31 * DAY, skew=None) == 4
    with pytest.raises(ValueError, match="the skew of a ledger is negative"):
        FileLedger(path, skew=timedelta(-1))


def test_a_device_with_kept_responses_checks_too(tmp_path: Path) -> None:
    spec = build.spec(mechanism={"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0})
    device = Device(spec, {}, ledger=FileLedger(tmp_path / "ledger.json", clock=SetClock()))
    with pytest.raises(UldpError, match="ahead of the clock"):
        device.report(1, START + DAY)
    device.report(1, START)


def test_a_clock_of_2038_in_an_earlier_run_silences_a_device_for_a_period_and_not_for_years(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(ahead=12 * YEAR)
    assert reports(path, clock) == 4
    clock.boot, clock.ahead = "second", 0
    assert reports(path, clock) == 0  # nor does it double the budget
    before = path.read_bytes()
    clock.passed = 30 * DAY - 1
    assert reports(path, clock) == 0
    assert path.read_bytes() == before
    clock.passed = 30 * DAY
    assert reports(path, clock) == 4
    clock.passed = 12 * YEAR + DAY  # the time has come that the clock showed
    assert reports(path, clock) == 0


def test_a_clock_of_2010_in_a_later_run_frees_nothing_when_it_is_right_again(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock()
    assert reports(path, clock) == 4
    clock.boot, clock.ahead = "second", -16 * YEAR
    assert reports(path, clock) == 0
    clock.boot, clock.ahead, clock.passed = "third", 0, DAY
    assert reports(path, clock) == 0
    clock.ahead = -2 * HOUR  # a little back, from which 2010 must not count
    assert reports(path, clock) == 0
    clock.ahead, clock.passed = 0, 30 * DAY
    assert reports(path, clock) == 4


def test_a_device_says_when_it_can_report_again_also_if_the_time_of_a_wrong_clock_comes_before(tmp_path: Path) -> None:
    path, clock = tmp_path / "ledger.json", SetClock(ahead=10 * DAY)
    assert reports(path, clock) == 4
    clock.boot, clock.ahead = "second", 0
    with pytest.raises(BudgetExceededError) as refused:
        Device(SPEC, {}, ledger=FileLedger(path, clock=clock)).report(1, clock.now())
    assert refused.value.until == START + 40 * DAY


def test_a_window_of_2038_does_not_keep_a_device_with_kept_responses_from_reporting(tmp_path: Path) -> None:
    spec = build.spec(mechanism={"name": "rr", "epsilon": 1.0, "lasting_epsilon": 2.0})
    clock = SetClock(ahead=12 * YEAR)
    device = Device(spec, {}, ledger=FileLedger(tmp_path / "ledger.json", clock=clock))
    device.report(1, clock.now())
    clock.boot, clock.ahead = "second", 0
    device.report(1, clock.now())
    for off in (0, -HOUR):
        with pytest.raises(ValueError, match="in this window, or in a later one"):
            device.report(1, clock.now() + off)


@st.composite
def _clocks(draw: st.DrawFn) -> list[tuple[int, int, bool]]:
    """Draw steps: how much time passes, how far the clock is ahead then, and whether the machine has been restarted."""
    passes = st.sampled_from([0, 60_000, HOUR, DAY, 10 * DAY, 29 * DAY, 30 * DAY, 31 * DAY]) | st.integers(0, 40 * DAY)
    far = st.integers(-16 * YEAR, 12 * YEAR)
    ahead = st.sampled_from([0, -HOUR, HOUR + 1, -10 * DAY, 10 * DAY, 31 * DAY, 12 * YEAR, -16 * YEAR]) | far
    return draw(st.lists(st.tuples(passes, ahead, st.booleans()), min_size=2, max_size=12))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_clocks(), skew=st.sampled_from([0, HOUR]))
def test_whatever_the_clock_does_a_period_has_one_budget_and_one_is_the_longest_silence(
    steps: list[tuple[int, int, bool]], skew: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # A restart cannot tell whether a machine was off or its clock jumps, so there, and before the first report behind
    # it, the clock comes no further ahead of the true time than it has been. Within a run, it jumps as it likes.
    path = tmp_path_factory.mktemp("clocks") / "ledger.json"
    clock, run, reported, least = SetClock(boot="0"), 0, True, 12 * YEAR
    sent: list[tuple[int, int]] = []

    def report() -> bool:
        device = Device(SPEC, {}, ledger=FileLedger(path, skew=timedelta(milliseconds=skew), clock=clock))
        with suppress(BudgetExceededError, ClockError):
            device.report(1, clock.now())
            sent.append((clock.passed, clock.now()))
            return True
        return False

    for passes, ahead, restarts in steps:
        clock.passed += passes
        if restarts:
            run, reported = run + 1, False
            clock.boot, clock.booted, ahead = str(run), clock.passed, min(ahead, least)
        clock.ahead = ahead if reported else min(ahead, *(now - START - passed for passed, now in sent), 12 * YEAR)
        least = min(least, clock.ahead)
        reported |= sum(report() for _ in range(3)) > 0
    for passed, _ in sent:
        assert sum(0 <= passed - earlier < PERIOD - skew for earlier, _ in sent) <= 4
    # Now the clock is right. A period after that is noticed, what the last one has by its own time alone counts.
    clock.boot, clock.booted, clock.ahead = "last", clock.passed, 0
    report()
    clock.passed += PERIOD + skew
    now, fits = clock.now(), 4 - sum(clock.now() - PERIOD - HOUR < time <= clock.now() + skew for _, time in sent)
    assert sum(report() for _ in range(5)) >= fits, now


@given(st.lists(st.tuples(st.integers(0, 10 * DAY), st.integers(-40 * DAY, 40 * DAY)), min_size=2))
def test_in_one_run_the_clock_never_comes_further_than_time_and_skew(steps: list[tuple[int, int]]) -> None:
    clock, known = SetClock(), None
    admitted: list[tuple[int, int]] = []
    for passes, ahead in steps:
        clock.passed, clock.ahead = clock.passed + passes, ahead
        with suppress(ClockError):
            known = checked_start(known, clock, clock.now(), timedelta(hours=1))
            admitted.append((clock.passed, clock.now()))
    for number, (passed, now) in enumerate(admitted):
        assert all(now - before <= passed - earlier + HOUR for earlier, before in admitted[:number])


def test_the_clock_of_this_machine() -> None:
    clock = SystemClock()
    first, now, second = clock.uptime(), clock.now(), clock.uptime()
    assert now > START
    assert (first is None) == (sys.platform != "linux")
    if first is not None and second is not None:
        assert first.boot == second.boot != ""
        assert 0 < first.elapsed <= second.elapsed
        known = Start(first.boot, now - first.elapsed)
        assert checked_start(known, clock, now, timedelta(hours=1)) is not None
