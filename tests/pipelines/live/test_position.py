"""A job says how far it is in a file beside its results, and the lock says whether it runs."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from uldp.pipelines.jobs.outputs import locked
from uldp.pipelines.live.position import POSITION, Position, PositionFile
from uldp.pipelines.live.served import is_running

HERE = Position(2_000, 1_000, 7, simulated=False, watermark=1_500, segments=3, messages=40, ahead=2, asked=1_900)


def wait_for(path: Path) -> None:
    ends = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_a_position_is_there_while_the_job_is(tmp_path: Path) -> None:
    with PositionFile(tmp_path, lambda: HERE):
        wait_for(tmp_path / POSITION)
        assert Position.read(tmp_path) == HERE
    assert list(tmp_path.iterdir()) == []


def test_a_position_is_written_again(tmp_path: Path) -> None:
    positions = iter(replace(HERE, at=at) for at in range(10**9))
    with PositionFile(tmp_path, lambda: next(positions), every=0.001):
        wait_for(tmp_path / POSITION)
        first = Position.read(tmp_path)
        assert first is not None
        ends = time.monotonic() + 60
        while (now := Position.read(tmp_path)) is None or now.at <= first.at:
            assert time.monotonic() < ends


def test_a_folder_that_is_gone_disturbs_no_job(tmp_path: Path) -> None:
    with PositionFile(tmp_path / "gone", lambda: HERE):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"at": "x"}', "x" * (2 << 20)])
def test_what_is_no_position_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / POSITION).write_text(text)
    assert Position.read(tmp_path) is None


def test_the_lag_is_that_of_a_real_clock() -> None:
    assert HERE.lag(now=9_500) == 8_000
    assert HERE.lag(now=1_000) == 0
    assert replace(HERE, watermark=None).lag(9_500) is None
    assert replace(HERE, simulated=True).lag(9_500) is None


def test_a_job_runs_while_it_holds_the_lock(tmp_path: Path) -> None:
    assert not is_running(tmp_path)
    with locked(tmp_path, "--to"):
        assert is_running(tmp_path)
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
