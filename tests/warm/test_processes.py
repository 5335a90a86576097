"""Processes that a server forks are like those that start anew, to who starts them."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "import os, sys; print(os.environ['A'], os.getcwd(), sys.argv, sys.stdin.read()); sys.exit(7)"
#: A program with a thread that ends after the main one, and a function that runs at the end; and ways to end it.
ENDING = """\
import atexit, sys, threading
threading.Thread(target=lambda: (threading.main_thread().join(), print("thread"))).start()
atexit.register(print, "at exit")
"""
ENDS = {"last line": "", "none": "sys.exit()", "code": "sys.exit(257)", "text": "sys.exit('text')", "error": "1 / 0"}
WAITING = "import time; print('waits', flush=True); time.sleep(600)"


@pytest.fixture
def waiting(warm: Path, tmp_path: Path) -> subprocess.Popen[str]:
    (tmp_path / "waiting.py").write_text(WAITING, encoding="utf-8")
    return subprocess.Popen([warm / "python", tmp_path / "waiting.py"], stdout=subprocess.PIPE, text=True)


def test_it_has_the_arguments_environment_directory_and_files_of_who_asks(warm: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    command, environment = [str(warm / "python"), "program.py", "", "b"], {"A": "a=\u00e4"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, input="in", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (7, f"a=ä {tmp_path} ['program.py', '', 'b'] in\n", "")


@pytest.mark.parametrize("how", ENDS)
def test_it_ends_as_one_that_starts_anew(how: str, warm: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ENDING + ENDS[how], encoding="utf-8")
    ended = []
    for python in (warm / "python", sys.executable):
        done = subprocess.run([python, "program.py"], cwd=tmp_path, capture_output=True, text=True)
        ended.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    assert ended[0] == ended[1]
    assert ended[0][1] == "thread\nat exit\n"


def test_signals_are_passed_on(waiting: subprocess.Popen[str]) -> None:
    with waiting as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM


def test_it_is_killed_with_who_asked(waiting: subprocess.Popen[str]) -> None:
    with waiting as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        assert process.stdout.read() == ""  # after all that have the pipe open have ended
