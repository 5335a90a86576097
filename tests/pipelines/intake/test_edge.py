"""What the edge does with each header, against a real server; docs/collecting_edge.md has the statuses of refusals."""

import gzip
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests import build
from tests.pipelines.serve.serving import Serving
from uldp.mechanisms.devices.table import device_table
from uldp.pipelines.intake.app import Intake, Tables, application
from uldp.pipelines.intake.commits import Commits
from uldp.pipelines.intake.edge import MOST_BYTES, origin_of
from uldp.pipelines.intake.judging import Judge
from uldp.schemas.errors import RequestError
from uldp.transforms.io.local.stream import LocalStream

PAGE = Path(__file__).parents[3] / "docs" / "collecting_edge.md"
SPEC = build.spec()
MESSAGE = build.report(1, 3).encode()
LINE = b"POST /v1/reports HTTP/1.1"


def request(*headers: bytes, body: bytes = MESSAGE, line: bytes = LINE, length: bool = True) -> bytes:
    sized = (b"Content-Length: %d" % len(body),) if length else ()
    return b"\r\n".join([line, b"Host: a", *sized, *headers, b"", body])


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


CHUNKED, GZIP = b"Transfer-Encoding: chunked", b"Content-Encoding: gzip"
#: Requests by what they have.
ROWS: dict[str, list[bytes]] = {
    "a message as it is, or `Content-Encoding: identity`": [request(), request(b"Content-Encoding: Identity")],
    "`Content-Encoding: gzip` or `x-gzip`": [
        request(GZIP, body=gzip.compress(MESSAGE)),
        request(b"Content-Encoding: x-gzip", body=gzip.compress(MESSAGE)),
    ],
    "a message that gzip has cut off": [
        request(GZIP, body=gzip.compress(MESSAGE)[:-1]),
        request(GZIP, body=MESSAGE),
        request(GZIP, body=gzip.compress(MESSAGE) + b"x"),
        request(GZIP, body=b""),
    ],
    "a message that gzip inflates to more than 1 MiB": [request(GZIP, body=gzip.compress(bytes(MOST_BYTES + 1)))],
    "another `Content-Encoding`": [request(b"Content-Encoding: br"), request(b"Content-Encoding: gzip, gzip")],
    "`Transfer-Encoding: chunked`": [request(CHUNKED, body=chunked(MESSAGE), length=False)],
    "`Content-Length` beside `Transfer-Encoding: chunked`": [request(CHUNKED, body=chunked(MESSAGE))],
    "two different `Content-Length`": [request(b"Content-Length: 3")],
    "another `Transfer-Encoding`": [request(b"Transfer-Encoding: gzip, chunked", length=False)],
    "`Expect: 100-continue`": [request(b"Expect: 100-continue")],
    "`Upgrade` to anything, which is passed over": [
        request(b"Connection: upgrade", b"Upgrade: websocket"),
        request(b"Connection: upgrade", b"Upgrade: h2c"),
    ],
    "HTTP/1.0": [request(line=b"POST /v1/reports HTTP/1.0")],
    "the absolute form of the target, as `POST http://HOST/v1/reports`": [
        request(line=b"POST http://a/v1/reports HTTP/1.1")
    ],
    "a client that closes its half of the connection behind the message": [request()],
    "17 kB of headers": [request(b"X: " + b"x" * 17_000), request(*(b"X: " + b"x" * 997 for _ in range(17)))],
    "`HEAD` or `GET` of `/v1/reports`": [
        request(line=method + b" /v1/reports HTTP/1.1", body=b"") for method in (b"HEAD", b"GET")
    ],
    "`HEAD` of any other address": [
        request(line=b"HEAD %s HTTP/1.1" % path, body=b"")
        for path in (b"/healthz", b"/metrics", b"/v1/openapi.json", b"/v1/tables/c-v1")
    ],
    "an `Origin` that `--origin` names, with a slash or in capitals there": [request(b"Origin: https://app.example")],
    "another `Origin`": [request(b"Origin: https://evil.example"), request(b"Origin: null")],
    "no HTTP": [b"\x16\x03\x01\r\n\r\n"],
}


#: The statuses of the requests that are refused.
REFUSED = {
    "a message that gzip has cut off": 400,
    "a message that gzip inflates to more than 1 MiB": 413,
    "another `Content-Encoding`": 415,
    "`Content-Length` beside `Transfer-Encoding: chunked`": 400,
    "two different `Content-Length`": 400,
    "another `Transfer-Encoding`": 400,
    "17 kB of headers": 431,
    "`HEAD` or `GET` of `/v1/reports`": 405,
    "another `Origin`": 403,
    "no HTTP": 400,
}


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    stream = LocalStream.create(tmp_path_factory.mktemp("edge") / "posted")
    judge = Judge([SPEC])
    commits = Commits(judge, stream, 1 << 22, clock=lambda: build.START)
    intake = Intake(commits, None, [origin_of("https://App.example/")], tables=Tables(judge.served))
    with Serving(app=application(intake)) as server:
        yield server
    commits.close(0)


def answer(serving: Serving, sent: bytes, *, half: bool = False) -> bytes:
    with socket.create_connection(("127.0.0.1", serving.port), timeout=60) as client:
        client.sendall(sent)
        if half:
            client.shutdown(socket.SHUT_WR)
        found = client.recv(1 << 16)
        return found if b" 100 " not in found[:14] else found.partition(b"\r\n\r\n")[2] or client.recv(1 << 16)


def test_the_page_has_each_status_of_a_refusal() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## What comes")[2].partition("\n## ")[0]
    assert {int(status) for status in re.findall(r"^\| (\d{3}) \|", page, re.MULTILINE)} == {*REFUSED.values()}
    assert REFUSED.keys() <= ROWS.keys()


@pytest.mark.parametrize(
    ("row", "sent"), [pytest.param(row, sent, id=f"{row[:40]}-{n}") for row in ROWS for n, sent in enumerate(ROWS[row])]
)
def test_each_request_has_its_status(row: str, sent: bytes, serving: Serving) -> None:
    taken = 200 if row.startswith("`HEAD` of any other") else 202
    assert int(answer(serving, sent, half="half" in row).split()[1]) == REFUSED.get(row, taken)


def test_a_browser_hears_when_to_come_again(serving: Serving) -> None:
    asked: dict[str, Any] = {"Access_Control_Request_Method": "POST"}
    asked["Access_Control_Request_Headers"] = "authorization, content-encoding, content-type"
    for origin, allowed in (("https://app.example", True), ("https://evil.example", False)):
        found = serving.get("/v1/reports", "OPTIONS", Origin=origin, **asked)
        assert (found.status == 200) == allowed
        assert (found.headers.get("access-control-allow-origin") == origin) == allowed
    early = build.report(2, 3, build.START + build.HOUR).encode()
    found = serving.get("/v1/reports", "POST", early, Origin="https://app.example")
    assert (found.status, found.headers["retry-after"], found.json()["reason"]) == (429, "7200", "too_early")
    assert found.headers["access-control-allow-origin"] == "https://app.example"
    assert "Retry-After" in found.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://App.Example/", "https://app.example"),
        ("http://app.example:8080/", "http://app.example:8080"),
        ("http://[::1]:80", "http://[::1]"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("*", "*"),
    ],
)
def test_an_origin_is_as_browsers_write_it(text: str, origin: str) -> None:
    assert origin_of(text) == origin


@pytest.mark.parametrize("text", ["app.example", "https://app.example/page", "https://", "https://a:b", "", "null"])
def test_what_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="not an origin; write scheme and host"):
        origin_of(text)


def test_a_table_has_its_digest_as_a_tag(serving: Serving) -> None:
    found = serving.get("/v1/tables/c-v1", Origin="https://app.example")
    table = json.loads(json.dumps(device_table(SPEC)))
    assert (found.json(), found.headers["etag"]) == (table, f'"{table["digest"]}"')
    assert found.headers["access-control-allow-origin"] == "https://app.example"
    assert found.headers["cache-control"] == "public, max-age=300"
    again = serving.get("/v1/tables/c-v1", If_None_Match=f'"x", W/"{table["digest"]}"')
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("name", ["c", "c-v2", "d-v1", "c-v01", "c-v1x", "..%2fc-v1", "c-v" + "9" * 5000])
def test_other_tables_are_not_there(name: str, serving: Serving) -> None:
    assert serving.get(f"/v1/tables/{name}").status == 404


def test_metrics_are_for_this_machine_and_count_each_post(serving: Serving) -> None:
    def samples() -> dict[str, float]:
        lines = [line for line in serving.get("/metrics").text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    before = samples()
    assert serving.get("/v1/reports", "POST", b"{}").status == 422
    assert serving.get("/v1/reports", "POST", MESSAGE).status == 202
    after = samples()
    for name in (
        'uldp_intake_posts_total{reason="",status="202"}',
        'uldp_intake_posts_total{reason="not_avro",status="422"}',
        'uldp_intake_seconds_total{le="+Inf"}',
    ):
        assert after[name] - before.get(name, 0) == 1
    assert serving.get("/metrics", X_Forwarded_For="192.0.2.1").status == 403


OPENAPI = json.loads((Path(__file__).parents[3] / "pipelines/uldp/pipelines/intake/openapi.json").read_text())


Asked = tuple[str, str, bytes | None, dict[str, str]]
ASKED: list[Asked] = [
    ("/v1/reports", "POST", MESSAGE, {}),
    ("/v1/reports", "POST", b"{}", {}),
    ("/v1/reports", "POST", MESSAGE, {"Content_Encoding": "br"}),
    ("/v1/reports", "POST", bytes(MOST_BYTES + 1), {}),
    ("/v1/reports", "POST", MESSAGE, {"Origin": "null"}),
    ("/v1/reports", "POST", build.report(2, 3, build.START + build.HOUR).encode(), {}),
    *(
        (path, "GET", None, {})
        for path in ("/v1/tables/c-v1", "/v1/tables/none", "/v1/openapi.json", "/metrics", "/healthz")
    ),
]


@pytest.mark.parametrize(("path", "method", "body", "headers"), ASKED)
def test_the_description_is_true(
    path: str, method: str, body: bytes | None, headers: dict[str, str], serving: Serving
) -> None:
    found = serving.get(path, method, body, **headers)
    described = OPENAPI["paths"][re.sub("tables/.*", "tables/{name}", path)][method.lower()]["responses"]
    answer = described[str(found.status)]
    if "$ref" in answer:
        answer = OPENAPI["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    if found.body and "json" in found.headers["content-type"]:
        schema = answer["content"]["application/json"]["schema"]
        jsonschema.Draft202012Validator({"components": OPENAPI["components"], **schema}).validate(found.json())
    assert serving.get("/v1/openapi.json").json() == OPENAPI
