"""The clock that stamps posts, while the clock of the machine is set, goes wrong and comes back."""

import pytest

from tests.build import HOUR, START
from uldp.pipelines.intake.clock import SteadyClock

SECOND, DAY = 1000, 24 * HOUR


class Machine:
    """A machine whose clock is wrong by some milliseconds."""

    def __init__(self) -> None:
        self.uptime, self.wrong = 0, 0
        self.said: list[str] = []
        self.clock = SteadyClock(lambda: self.truth + self.wrong, self.said.append, lambda: self.uptime / 1000)

    @property
    def truth(self) -> int:
        return START + self.uptime

    def error_after(self, seconds: float) -> int:
        self.uptime += int(seconds * SECOND)
        return self.clock.now() - self.truth


@pytest.mark.parametrize("wrong", [3 * DAY, -3 * DAY, 30 * SECOND, -30 * SECOND])
def test_a_clock_that_is_wrong_for_less_than_a_minute_stamps_nothing(wrong: int) -> None:
    machine = Machine()
    assert machine.error_after(10) == 0
    machine.wrong = wrong
    assert [machine.error_after(seconds) for seconds in (1, 28, 30)] == [0, 0, 0]
    machine.wrong = 0
    assert [machine.error_after(seconds) for seconds in (1, 100)] == [0, 0]
    machine.wrong = wrong  # again, which begins a new minute
    assert machine.error_after(59) == 0
    assert machine.said == []


@pytest.mark.parametrize(("wrong", "way"), [(3 * DAY, "ahead by 259,200 s"), (-3 * DAY, "back by 259,200 s")])
def test_a_clock_that_was_set_is_followed_after_a_minute_and_a_line_says_so(wrong: int, way: str) -> None:
    machine = Machine()
    machine.wrong = wrong
    assert [machine.error_after(seconds) for seconds in (1, 59, 1)] == [0, 0, wrong]
    (line,) = machine.said
    assert f"was set {way}" in line
    machine.wrong = 0
    assert [machine.error_after(seconds) for seconds in (1, 59, 1)] == [wrong, wrong, 0]
    assert len(machine.said) == 2


def test_a_clock_that_jumps_about_is_not_followed() -> None:
    machine = Machine()
    for jump in range(100):
        machine.wrong = (jump % 2 + 1) * DAY
        assert machine.error_after(50) == 0


def test_small_steps_are_followed_and_no_stamp_falls() -> None:
    machine = Machine()
    machine.wrong = 900
    assert machine.error_after(1) == 900
    before = machine.clock.now()
    machine.wrong = 0
    assert machine.clock.now() == before
    assert machine.error_after(2) == 0
