"""The state of a key is copied so that a bundle which fails changes nothing, and so that all of it is there."""

from typing import Any

from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import _ListStateTag, _ReadModifyWriteStateTag

from uldp.transforms.internals import Timestamp, unmerged_state
from uldp.transforms.io.local.lighter_runner import copied_state

BAG, VALUE, OF_A_TRIGGER = _ListStateTag("user/bag"), _ReadModifyWriteStateTag("user/value"), "a trigger's"
WINDOWS = "a window", "another"


def filled() -> Any:
    state = unmerged_state()()
    for window in WINDOWS:
        state.add_state(window, BAG, b"a")
        state.add_state(window, VALUE, [b"v"])
        state.set_timer(window, "user/due", TimeDomain.WATERMARK, Timestamp(5))
    return state


def changed(state: Any) -> None:
    """Change all that a bundle can change."""
    state.add_state(WINDOWS[0], BAG, b"b")
    state.add_state(WINDOWS[0], VALUE, [b"w"])
    state.set_timer(WINDOWS[0], "user/due", TimeDomain.WATERMARK, Timestamp(9))
    state.set_timer(WINDOWS[0], "user/early", TimeDomain.REAL_TIME, Timestamp(9))
    state.clear_state(WINDOWS[1], BAG)
    state.clear_timer(WINDOWS[1], "user/due", TimeDomain.WATERMARK)


def held(state: Any) -> tuple[Any, ...]:
    return state.timers, state.state, state.global_state


def test_a_copy_has_all_and_shares_nothing_that_changes() -> None:
    original = filled()
    expected = original.copy()
    with copied_state():
        copy = original.copy()
        again = copy.copy()
    assert held(copy) == held(again) == held(expected) == held(filled())
    changed(copy)
    assert held(original) == held(again) == held(filled()) != held(copy)


def test_the_state_of_triggers_is_copied_as_the_runner_does() -> None:
    original = filled()
    original.set_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER), [1])
    with copied_state():
        copy = original.copy()
    copy.get_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER)).append(2)
    assert original.get_global_state(_ReadModifyWriteStateTag(OF_A_TRIGGER)) == [1]


def test_the_runner_copies_as_before_behind_the_context() -> None:
    before = unmerged_state().copy
    with copied_state():
        assert unmerged_state().copy is not before
    assert unmerged_state().copy is before
