"""Two processes in C share a ledger and a queue in files: killed at any time, they spend a budget once, lose no row."""

import os
import random
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.clients import compiled
from tests import build
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.clients.c_table import c_table

#: What an attempt has beyond its time limit, so that leases of killed processes end soon.
OPTIONS = ("-std=gnu11", "-O2", "-DNAME=c", "-DULDP_SLACK_MS=200")


class Counting(ThreadingHTTPServer):
    """A server that counts messages by their bytes, and answers some of them by 503 or not at all."""

    daemon_threads = True

    def __init__(self, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: Counter[bytes] = Counter()
        self.posts = 0
        self.draw = random.Random(seed)
        self.came = threading.Condition()


class _Handler(BaseHTTPRequestHandler):
    server: Counting

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.came:
            answer = self.server.draw.choices([202, 503, None], [8, 1, 1])[0]
            self.server.posts += 1
            if answer != 503:
                self.server.taken[body] += 1
            self.server.came.notify_all()
        if answer is not None:
            self.send_response(answer)
            self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def counting(seed: int) -> Iterator[Counting]:
    server = Counting(seed)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def built(folder: Path, reports: int) -> str:
    spec = build.spec(mechanism={"name": "rr", "epsilon": 1.0}, budget={"epsilon": reports, "every": "30d"})
    (folder / "table.h").write_text("\n".join(c_table(device_table(spec), "c")) + "\n")
    return compiled(folder, "together", *OPTIONS)


def kill_and_finish(program: str, folder: Path, reports: int, seed: int) -> None:
    """Run two processes, kill them after numbers of posts that a seed draws, and compare what came with the budget."""
    draw, kills, texts = random.Random(seed), 0, list[str]()
    state = folder / "state"
    state.mkdir()
    with counting(seed) as server:

        def started() -> subprocess.Popen[str]:
            return subprocess.Popen(
                [program, str(state), str(server.server_port)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        processes = [started(), started()]
        while server.posts < reports * 0.8:  # of these, there are as many whatever is killed
            until = min(server.posts + draw.randrange(1, 45), reports * 4 // 5)
            with server.came:
                assert server.came.wait_for(lambda until=until: server.posts >= until, timeout=60)  # type: ignore[misc]
            number = draw.randrange(2)
            processes[number].kill()
            texts.append(processes[number].communicate()[0])
            processes[number], kills = started(), kills + 1
        for process in processes:
            out, err = process.communicate(timeout=120)
            assert (process.returncode, err) == (0, "")
            texts.append(out)
    lines = [line for text in texts for line in text.splitlines()]
    queued = {bytes.fromhex(line.split()[0]) for line in lines if line.endswith(" queued")}
    assert [line for line in lines if line.startswith("spent")][-1] == f"spent {reports}"
    assert queued <= server.taken.keys()
    # A process that is killed between its ledger and its queue has spent a budget for nothing, and sent nothing.
    assert reports - kills <= len(server.taken) <= reports
    assert kills >= reports // 45
    assert sorted(path.name for path in state.iterdir() if not path.name.endswith(".new")) == [
        "ledger",
        "ledger.lock",
        "queue",
        "queue.lock",
    ]


def test_two_killed_processes_share_memory_of_100_reports(tmp_path: Path) -> None:
    kill_and_finish(built(tmp_path, 100), tmp_path, 100, 1)


@pytest.mark.parametrize("seed", range(3))
def test_two_killed_processes_share_1000_reports(tmp_path: Path, seed: int) -> None:
    kill_and_finish(built(tmp_path, 1000), tmp_path, 1000, seed)


def outcome(program: str, state: Path) -> tuple[int, str]:
    done = subprocess.run([program, str(state), "1"], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr.strip()


def test_files_that_are_no_ledger_of_the_owner_refuse_and_name_the_remedy(tmp_path: Path) -> None:
    program, state = built(tmp_path, 20), tmp_path / "state"
    state.mkdir()
    with counting(1) as server:
        done = subprocess.run(
            [program, str(state), str(server.server_port)], capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    ledger, before = state / "ledger", (state / "ledger").read_bytes()
    for wrong in (
        b"",
        before[:-1],
        before + b"\0",
        (state / "queue").read_bytes(),
        before.replace(b"uldp\1", b"uldp\2"),
    ):
        ledger.write_bytes(wrong)
        code, said = outcome(program, state)
        assert (code, said.partition(";")[0]) == (3, "the ledger is damaged, of a later version or another entry")
        assert ledger.read_bytes() == wrong
    ledger.write_bytes(before)
    ledger.chmod(0o640)
    assert "0600" in outcome(program, state)[1]
    ledger.unlink()
    ledger.symlink_to(state / "queue")
    assert "no file" in outcome(program, state)[1]
    ledger.unlink()
    ledger.mkdir()
    assert "no file" in outcome(program, state)[1]
    ledger.rmdir()
    os.truncate(state / "queue", 20)
    ledger.write_bytes(before)
    ledger.chmod(0o600)
    (state / "ledger.new").write_text("what a crash has left")
    code, _ = outcome(program, state)
    assert (code, (state / "queue.damaged-1").stat().st_size, (state / "queue").stat().st_size) == (5, 20, 48)
    assert outcome(program, state / "missing") == (3, "the store could not read or write; errno says why")
