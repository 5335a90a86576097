"""Processes that are held to a share of the cores take as much longer."""

import subprocess
import sys
import time

import pytest

from benchmarks.cores import NotPermittedError, held_to

#: Seconds of the processor that each of two processes takes once it is told to begin.
WORK = 0.5
COMMAND = f"input()\nimport time\nwhile time.process_time() < {WORK}: pass"


def test_held_processes_take_as_much_longer() -> None:
    def start() -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-c", COMMAND], stdin=subprocess.PIPE, text=True)

    with start() as one, start() as other:
        try:
            with held_to(0.5, [one.pid, other.pid]):
                began = time.monotonic()
                for process in (one, other):
                    process.communicate("begin\n")
                # What a process takes to start may have been taken before; a period's share may be taken at once.
                assert time.monotonic() - began > 0.8 * 2 * WORK / 0.5 - 0.2
        except NotPermittedError as error:
            for process in (one, other):
                process.communicate("begin\n")
            pytest.skip(f"control groups cannot be made here: {error}")


def test_a_share_that_is_none_is_not_permitted() -> None:
    with pytest.raises(NotPermittedError), held_to(0.0, []):
        pass
