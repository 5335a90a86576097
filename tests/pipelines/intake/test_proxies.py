"""nginx, HAProxy and Caddy before the server, as docs/collecting_edge.md asks: answers pass, each client is its own."""

import getpass
import gzip
import http.client
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import build
from tests.pipelines.intake.posting import Collecting, post
from tests.pipelines.intake.test_collect import now, write_spec
from uldp.pipelines.intake.edge import MOST_BYTES
from uldp.pipelines.web.server import bound

pytestmark = pytest.mark.nightly
TEMPORARY = "client_body", "proxy", "fastcgi", "uwsgi", "scgi"


def nginx(folder: Path, listen: int, port: int) -> list[str]:
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in TEMPORARY)
    (folder / "nginx.conf").write_text(
        f"user {getpass.getuser()}; daemon off; pid {folder}/pid; error_log {folder}/errors; events {{}}\n"
        f"http {{ access_log off; {paths} client_max_body_size 2m;\n"
        f"server {{ listen 127.0.0.1:{listen}; location / {{ proxy_pass http://127.0.0.1:{port};"
        " proxy_http_version 1.1; proxy_set_header X-Forwarded-For $remote_addr; } } }\n"
    )
    return ["nginx", "-c", str(folder / "nginx.conf")]


def haproxy(folder: Path, listen: int, port: int) -> list[str]:
    (folder / "haproxy.cfg").write_text(
        "defaults\n  mode http\n  timeout connect 9s\n  timeout client 60s\n  timeout server 60s\n"
        f"frontend devices\n  bind 127.0.0.1:{listen}\n  default_backend edge\n"
        f"backend edge\n  http-request set-header X-Forwarded-For %[src]\n  server edge 127.0.0.1:{port}\n"
    )
    return ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]


def caddy(folder: Path, listen: int, port: int) -> list[str]:
    (folder / "Caddyfile").write_text(
        "{\n  admin off\n  auto_https off\n}\n"
        f"http://127.0.0.1:{listen} {{\n  bind 127.0.0.1\n  reverse_proxy 127.0.0.1:{port} {{\n"
        "    header_up X-Forwarded-For {remote_host}\n  }\n}\n"
    )
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


@pytest.fixture(params=[nginx, haproxy, caddy])
def port(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    make: Callable[[Path, int, int], list[str]] = request.param
    if shutil.which(make.__name__) is None:
        pytest.skip(f"{make.__name__} is not installed")
    write_spec(tmp_path / "spec.yaml")
    with bound("127.0.0.1", 0) as free:
        listen: int = free.getsockname()[1]
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted", "--megabytes", "3") as collecting:
        proxy = subprocess.Popen(make(tmp_path, listen, collecting.port), stderr=subprocess.DEVNULL)
        try:
            while True:
                try:
                    assert post(listen, b"", "GET", "/healthz")[0] == 200
                    break
                except ConnectionRefusedError:
                    assert proxy.poll() is None
                    time.sleep(0.05)
            yield listen
        finally:
            proxy.terminate()
            proxy.wait()


def test_each_answer_comes_through_a_proxy(port: int) -> None:
    reports = [build.report(number, 3, now()).encode() for number in range(5)]
    assert post(port, reports[0])[0] == 202
    assert post(port, gzip.compress(reports[1]), headers={"Content-Encoding": "gzip"})[0] == 202
    assert post(port, iter([reports[2]]))[0] == 202
    assert post(port, b"{}")[0] == 422
    assert post(port, reports[3], headers={"Content-Encoding": "br"})[0] == 415
    assert post(port, bytes(MOST_BYTES + 1))[0] == 413
    status, headers, _ = post(port, build.report(9, 3, now() + build.HOUR).encode())
    assert (status, headers["retry-after"]) == (429, "7200")


def test_each_client_of_a_proxy_has_its_own_rate_limit(port: int) -> None:
    body = build.batch([build.report(number, 3, now()) for number in range(30_000)]).encode()

    def sent(host: str) -> int:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(host, 0))
        client.request("POST", "/v1/reports", body, {"X-Forwarded-For": "192.0.2.1"})
        status = client.getresponse().status
        client.close()
        return status

    first = [sent("127.0.0.2") for _ in range(6)]
    assert first[:2] == [202, 202]
    assert 429 in first
    assert sent("127.0.0.3") == 202
