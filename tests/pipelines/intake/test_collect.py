"""The command as a device and an operator see it, and who may post."""

import http.client
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests import build
from tests.pipelines.command import Run
from tests.pipelines.intake.posting import Collecting, post
from uldp.collector import Collector, ReportReader
from uldp.pipelines.intake.app import BODY_SECONDS
from uldp.pipelines.intake.edge import MOST_BYTES
from uldp.pipelines.intake.tokens import Tokens
from uldp.schemas.errors import RequestError
from uldp.schemas.records import SENDER
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.local.stream import UNFINISHED, LocalStream
from uldp.transforms.io.message_files import read_messages

TOKEN = "0123456789abcdef"
NIGHTLY_KILLS = 20


def write_spec(path: Path) -> CollectionSpec:
    path.write_text(yaml.safe_dump(build.MINIMAL | {"limits": {"min_reports": 1}}))
    return CollectionSpec.load(path)


def now() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collecting, Path]]:
    folder = tmp_path_factory.mktemp("intake")
    write_spec(folder / "spec.yaml")
    (folder / "tokens.csv").write_text(f"token,sender\n{TOKEN},phone\n")
    options = ("--tokens", str(folder / "tokens.csv"), "--origin", "https://app.example")
    with Collecting(folder / "spec.yaml", folder / "posted", *options) as collecting:
        yield collecting, folder / "posted"


def test_a_report_is_on_disk_with_its_sender_when_it_is_answered(served: tuple[Collecting, Path]) -> None:
    collecting, stream = served
    body = build.report(1, 3, now()).encode()
    status, _, answer = post(collecting.port, body, headers={"Authorization": f"Bearer {TOKEN}"})
    assert (status, answer) == (202, b"")
    messages = [each for segment in LocalStream.open(stream).segments() for each in read_messages(segment)]
    assert [(each.data, each.attributes) for each in messages if each.data == body] == [(body, {SENDER: "phone"})]


@pytest.mark.parametrize(
    ("body", "headers", "status", "text"),
    [
        (b"{}", {}, 401, "bring a token"),
        (b"{}", {"Authorization": "Bearer 0123456789abcdeg"}, 401, "bring a token"),
        (b"{}", {"Authorization": f"Bearer {TOKEN}"}, 422, "not_avro"),
    ],
)
def test_what_is_refused_is_refused_with_the_reason(
    body: bytes, headers: dict[str, str], status: int, text: str, served: tuple[Collecting, Path]
) -> None:
    collecting, stream = served
    before = len(LocalStream.open(stream).segments())
    found, _, answer = post(collecting.port, body, headers=headers)
    assert found == status
    assert text in answer.decode()
    json.loads(answer)
    assert len(LocalStream.open(stream).segments()) == before


@pytest.mark.parametrize(("size", "end"), [(MOST_BYTES + 1, None), ((16 << 20) + 1, "close")])
def test_a_body_that_is_too_long_is_refused_before_it_comes(
    size: int, end: str | None, served: tuple[Collecting, Path]
) -> None:
    collecting, _ = served
    connection = http.client.HTTPConnection("127.0.0.1", collecting.port, timeout=60)
    connection.putrequest("POST", "/v1/reports")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Content-Length", str(size))
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, answer.headers["connection"]) == (413, end)
    connection.close()


def test_who_has_no_token_holds_no_connection(served: tuple[Collecting, Path]) -> None:
    """The answer comes before the message, and the server waits a second for the rest, not as long as for a message."""
    with socket.create_connection(("127.0.0.1", served[0].port), timeout=10) as connection:
        connection.sendall(b"POST /v1/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        answer = b"".join(iter(partial(connection.recv, 4096), b""))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert BODY_SECONDS > 10  # so that this socket would time out


def test_a_body_that_does_not_say_its_length_is_cut_off(served: tuple[Collecting, Path]) -> None:
    collecting, _ = served
    connection = http.client.HTTPConnection("127.0.0.1", collecting.port, timeout=60)
    connection.putrequest("POST", "/v1/reports")
    connection.putheader("Authorization", f"Bearer {TOKEN}")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"%x\r\n%s\r\n" % (MOST_BYTES + 1, bytes(MOST_BYTES + 1)))  # and no end
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize("state", ["closed", "simulated", "unfinished"])
def test_the_stream_of_another_command_is_refused_and_stays_as_it_is(state: str, uldp: Run, tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=state == "simulated")
    stream.append([build.message(build.report(1, 3))])
    if state == "closed":
        stream.close()
    elif state == "unfinished":
        (stream.path / UNFINISHED).touch()
    before = sorted(stream.path.iterdir())
    code, _, err = uldp("collect", "--spec", tmp_path / "spec.yaml", "--to", stream.path, "--port", "0")
    assert (code, len(err.splitlines())) == (1, 1)
    assert "the stream of another command" in err
    assert sorted(stream.path.iterdir()) == before


def test_nobody_elsewhere_posts_without_a_token(uldp: Run, tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    code, _, err = uldp("collect", "--spec", tmp_path / "spec.yaml", "--to", tmp_path / "posted", "--host", "0.0.0.0")
    assert code == 1
    assert "senders need tokens" in err
    assert not (tmp_path / "posted").exists()


def test_a_late_report_is_taken_and_its_sender_hears_that_it_is_late(tmp_path: Path) -> None:
    write_spec(tmp_path / "spec.yaml")
    late = build.report(1, 3, now() - 3 * build.HOUR).encode()
    with Collecting(tmp_path / "spec.yaml", tmp_path / "posted") as collecting:
        status, headers, answer = post(collecting.port, late)
        assert (status, headers["content-type"], json.loads(answer)) == (202, "application/json", {"late": 1})
        assert post(collecting.port, build.report(2, 3, now()).encode())[::2] == (202, b"")
        code, out, err = collecting.stop(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert "has every message that was answered with 202; 1 of their reports came late" in out
    assert not LocalStream.open(tmp_path / "posted").closed
    (written, _) = [each for path in LocalStream.open(tmp_path / "posted").segments() for each in read_messages(path)]
    assert written.data == late


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, pytest.param(NIGHTLY_KILLS, marks=pytest.mark.nightly)])
def test_whatever_was_answered_with_202_is_counted_once_through_kills(kills: int, tmp_path: Path) -> None:
    """Four devices send one report after the other until it is answered; the process is killed again and again."""
    spec, stream = write_spec(tmp_path / "spec.yaml"), tmp_path / "posted"
    answered: set[int] = set()
    up = threading.Event()
    ended = False
    port = 0

    def device(number: int) -> None:
        count = 0
        while up.wait() and not ended:
            report = number * 1_000_000 + count
            try:
                if post(port, build.report(report, report % 5, now()).encode())[0] == 202:
                    answered.add(report)
                    count += 1
            except (OSError, http.client.HTTPException):
                continue  # the same report again

    with ThreadPoolExecutor(4) as devices:
        running: list[object] = []
        for _ in range(kills):
            with Collecting(tmp_path / "spec.yaml", stream, port=port) as collecting:
                port = collecting.port
                up.set()
                running = running or [devices.submit(device, number) for number in range(4)]
                before = len(answered)
                while len(answered) < before + 20:
                    time.sleep(0.001)
                collecting.stop(signal.SIGKILL)
                up.clear()
        ended = True
        up.set()
    messages = [each for segment in LocalStream.open(stream).segments() for each in read_messages(segment)]
    collector = Collector([spec])
    collector.add(messages)
    decoded = ReportReader([spec], judge_lateness=False).decode(messages)
    ids = {int.from_bytes(each.tobytes(), "big") for part in decoded.columns for each in part.report_ids}
    assert answered <= ids
    assert len(ids - answered) <= 4  # a device may have waited for an answer at the end
    assert sum(each.n for each in collector.statistics()) == len(ids) >= 20 * kills


PHONE, WATCH = "0123456789abcdef", "fedcba9876543210"


@pytest.mark.parametrize(
    ("header", "sender"),
    [
        (f"Bearer {PHONE}", "phone"),
        (f"bearer  {PHONE} ", "phone"),
        (f"Bearer {WATCH}", "watch"),
        (f"Basic {PHONE}", None),
        ("", None),
        ("Bearer \udcff", None),
    ],
)
def test_a_token_names_its_sender(header: str, sender: str | None, tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text(f"token,sender\n{PHONE},phone\n{WATCH},watch\n")
    assert Tokens.read(tmp_path / "tokens.csv").sender(header) == sender


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("token,sender\n", "the file has no tokens"),
        (f"{PHONE},phone\n", "not a table of token,sender"),
        (f"token,sender\n{PHONE},phone\n{PHONE},watch\n", "line 3: the token occurs twice"),
        (f"token,sender\n{PHONE}\n", "line 2: the row has 1 fields"),
        (f"token,sender\n{PHONE}é,phone\n", "16 printable ASCII characters"),
        (f"token,sender\n{PHONE},\n", "a token has no sender"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line_without_a_token(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.csv"
    path.write_text(text)
    with pytest.raises(RequestError) as refused:
        Tokens.read(path)
    assert why in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")
    assert PHONE[:15] not in str(refused.value)
    assert "\n" not in str(refused.value)
