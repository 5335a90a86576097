"""The messages that a client has sent: hexadecimal digits, a file of one message, or files of messages."""

import string
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from uldp.collector.plain_decoder import MAX_MESSAGE_BYTES
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.records import records_of, rejected_in
from uldp.schemas.errors import DataError
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected, each_once
from uldp.schemas.specs.mistakes import quote
from uldp.transforms.io.archive import message_files
from uldp.transforms.io.folders import Kind, kind_of
from uldp.transforms.io.message_files import opened, read_messages

#: The publish time of a message whose publish time is unknown.
UNKNOWN = -1
_CONTAINER = b"Obj\x01"
#: Number of messages to handle at once.
_AT_ONCE = 8192


def sent_messages(source: str, published: int = UNKNOWN) -> Iterator[Message]:
    """Yield the messages of a path, see ``archived_messages``, or in hexadecimal digits; ValueError says what to do."""
    if _exists(source):
        yield from archived_messages(source, published)
    else:
        yield Message(_from_hex(source), published)


def archived_messages(path: str, published: int = UNKNOWN) -> Iterator[Message]:
    """Yield the messages of a container, a directory of these, or a file with one, ``published`` if they do not say.

    ValueError, which says what to do, if a directory holds no messages, or a container is broken; OSError if there is
    no such file.
    """
    if kind_of(Path(path)) is Kind.REJECTED:
        yield from _rejected_messages(Path(path))
        return
    if Path(path).is_file():
        with opened(path) as file:
            # Of a longer message, this is enough to see that it is too long.
            data = file.read(MAX_MESSAGE_BYTES + 1)
        if data.startswith(_CONTAINER):
            yield from read_messages(path, published)
        else:
            yield Message(data, published)
        return
    for each in message_files(path):
        yield from read_messages(each, published)


def _rejected_messages(path: Path) -> Iterator[Message]:
    """Yield the messages of records of rejected reports whose bytes are stored, as they came."""
    records = (
        rejected_in(path, refuse)
        if path.is_dir()
        else each_once(records_of([path], "rejected", Rejected.from_avro, refuse))
    )
    for record in records:
        for body, published in record.each():
            yield Message(body, published, record.attributes, record.source)


def in_chunks(messages: Iterator[Message]) -> Iterator[list[Message]]:
    """Split messages into lists that a collector handles at once."""
    while chunk := list(islice(messages, _AT_ONCE)):
        yield chunk


def _exists(source: str) -> bool:
    try:
        return bool(source) and Path(source).exists()  # an empty path is the working directory
    except (OSError, ValueError):  # longer than a name may be, or with a zero byte
        return False


def _from_hex(text: str) -> bytes:
    digits = "".join(text.split())
    if len(digits) % 2 or not set(digits) <= set(string.hexdigits):
        raise DataError(
            f"{quote(text)}: neither a file nor the hexadecimal digits of a message, two for each byte; check the path"
        )
    return bytes.fromhex(digits)
