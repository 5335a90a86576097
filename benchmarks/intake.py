"""The posts that ``uldp collect`` takes in a second of its processor, and in a second.

    python -m benchmarks.intake

Sixteen devices post to a local stream over connections that stay open. A post is answered when its segment is synced.
"""

import http.client
import os
import tempfile
import threading
import time
from pathlib import Path

import yaml

from benchmarks.rows import Row, print_table
from tests import build
from tests.pipelines.intake.posting import Collecting

DEVICES, POSTS = 16, 250
#: Reports in a post.
SIZES = 1, 100, 1000


def main() -> None:
    """Print what the server's processor takes for small and for large posts."""
    rows = []
    for size in SIZES:
        taken, used = measure(size)
        posts = DEVICES * POSTS
        rows.append(
            Row("posts of devices", f"{size:,} reports each", posts, used, remark=f"{posts / taken:,.0f} a second")
        )
    print_table(rows)


def measure(size: int) -> tuple[float, float]:
    """Return the seconds that all posts took, and those of the server's processor."""
    now = time.time_ns() // 1_000_000
    with tempfile.TemporaryDirectory() as name:
        spec = Path(name, "spec.yaml")
        spec.write_text(yaml.safe_dump(build.MINIMAL), encoding="utf-8")
        with Collecting(spec, Path(name, "posted"), "--megabytes", "100000") as collecting:
            bodies = [[_batch(number * POSTS + post, size, now) for post in range(POSTS)] for number in range(DEVICES)]
            threads = [threading.Thread(target=_post, args=(collecting.port, each)) for each in bodies]
            began, used = time.monotonic(), _processor(collecting.process.pid)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return time.monotonic() - began, _processor(collecting.process.pid) - used


def _batch(number: int, size: int, now: int) -> bytes:
    return build.batch([build.report(number * size + each, each % 5, now) for each in range(size)]).encode()


def _post(port: int, bodies: list[bytes]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for body in bodies:
        connection.request("POST", "/v1/reports", body)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 202
    connection.close()


def _processor(process: int) -> float:
    """Return the seconds that a process of this machine has used."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
