"""The headers of a message of Kafka, as attributes."""

from collections.abc import Mapping
from typing import Any

from uldp.schemas.records import KNOWN_ATTRIBUTES, MAX_VALUE_BYTES, NO_ATTRIBUTES, known_attributes

#: A message with more headers is hostile; all of them would cost as much as thousands of messages.
MAX_HEADERS = 100


def attributes(raw: Any) -> Mapping[str, str]:
    """Return the last ``MAX_HEADERS`` headers of a client's message as attributes; of one name, the last one.

    Bytes that are not text are escaped. If a name is not text, the client cannot read them, and there are none.
    """
    try:
        headers = raw.headers()
    except (UnicodeDecodeError, SystemError):
        return NO_ATTRIBUTES
    if not headers:
        return NO_ATTRIBUTES
    named = {name: value or b"" for name, value in headers[-MAX_HEADERS:] if name in KNOWN_ATTRIBUTES}
    # A cut may fall into a character, so it is behind the bytes that are stored.
    read = {name: value[: 2 * MAX_VALUE_BYTES].decode("utf-8", "backslashreplace") for name, value in named.items()}
    return known_attributes(read)
