"""The framing of a schema registry becomes our header, and nothing else changes."""

import numpy as np
import pytest

from uldp.schemas.codec.packed import Bodies
from uldp.schemas.codec.registry import MAX_REGISTRY_ID, RegistryIds
from uldp.schemas.framing import HEADER_SIZE, header, load_schema

REPORT, BATCH = header(load_schema("report")), header(load_schema("report_batch"))
IDS = {7: "report", 8: "report_batch", 0: "report", MAX_REGISTRY_ID: "report_batch"}
HEADERS = {7: REPORT, 8: BATCH, 0: REPORT, MAX_REGISTRY_ID: BATCH}


def framed(number: int, body: bytes = b"") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def reframed(*messages: bytes) -> list[bytes]:
    bodies = RegistryIds(IDS).reframed(Bodies.of(messages))
    return [bodies[row] for row in range(len(messages))]


@pytest.mark.parametrize("number", IDS)
@pytest.mark.parametrize("body", [b"", b"\0", b"body", framed(7, b"body")], ids=repr)
def test_a_known_id_becomes_the_header_of_its_schema(number: int, body: bytes) -> None:
    assert reframed(framed(number, body)) == [HEADERS[number] + body]


OTHERS = [b"", b"\0", framed(7)[:4], framed(6, b"body"), framed(9), framed(1 << 31), b"\1" + framed(7), REPORT + b"b"]


@pytest.mark.parametrize("message", OTHERS, ids=repr)
def test_other_messages_stay_as_they_are(message: bytes) -> None:
    bodies = Bodies.of([message, b"\1"])
    assert RegistryIds(IDS).reframed(bodies) is bodies


def test_each_message_of_a_mixture_is_read_alone() -> None:
    rng = np.random.default_rng(1)
    kinds = [*OTHERS, *(framed(number, body) for number in IDS for body in (b"", b"body", bytes(9)))]
    sent = [kinds[kind] for kind in rng.integers(len(kinds), size=500)]
    assert reframed(*sent) == [reframed(each)[0] for each in sent]


def test_messages_may_be_anywhere_in_their_buffer() -> None:
    one, other = framed(7, b"one"), framed(8, b"other")
    buffer = bytes(3) + framed(7) + other + b"between" + one + bytes(5)
    starts = np.array([buffer.index(one), buffer.index(other), 0, len(buffer)], dtype=np.intp)
    lengths = np.array([len(one), len(other), 3, 0], dtype=np.intp)
    bodies = RegistryIds(IDS).reframed(Bodies(buffer, starts, starts + lengths))
    assert [bodies[row] for row in range(4)] == [REPORT + b"one", BATCH + b"other", bytes(3), b""]
    assert len(bodies.buffer) == len(buffer) + 2 * (HEADER_SIZE - 5)


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ({-1: "report"}, "id -1 must be a whole number from 0 to 4294967295"),
        ({1 << 32: "report"}, "id 4294967296 must be"),
        ({7: "message"}, "schema 'message' must be report or report_batch"),
    ],
)
def test_ids_that_mean_nothing_are_refused(ids: dict[int, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        RegistryIds(ids)
