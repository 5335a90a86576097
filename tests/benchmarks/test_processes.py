"""What other processes have taken is what they say themselves."""

import os
import subprocess
import sys
import time

import pytest

from benchmarks.processes import seconds_of, session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_seconds_are_those_that_a_process_counts_itself() -> None:
    before = time.process_time()
    taken = seconds_of([os.getpid()])
    assert before - 0.02 <= taken <= sum(os.times()[:4]) + 0.02  # ticks of a hundredth


def test_a_session_has_its_leader_and_what_it_started_until_they_end() -> None:
    with subprocess.Popen(["sh", "-c", "cat; exit"], stdin=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdin is not None
        while len(found := [*session(leader.pid)]) < 2:
            assert leader.poll() is None
        assert leader.pid in found
        leader.stdin.close()
        leader.wait()
        assert not [*session(leader.pid)]
        assert seconds_of(found) == 0
