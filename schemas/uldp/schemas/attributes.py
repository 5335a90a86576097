"""The known attributes of a message. A sender may write any others; each source drops them."""

from collections.abc import Mapping

from uldp.schemas.records import ATTEMPT, NO_ATTRIBUTES, SENDER

#: The attributes that have a meaning here. The record of each late or rejected report holds the attributes of its
#: message, and a batch has thousands of reports: 330 KB of attributes in one message once became 501 MB.
KNOWN_ATTRIBUTES = (ATTEMPT, SENDER)
#: Bytes that are read of a value: enough for the name of a device or a digest in text. Sender keys that begin with the
#: same 256 bytes count as one sender.
MAX_VALUE_BYTES = 256


def known_attributes(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return the known attributes of a message, with bounded values. The work does not grow with their number.

    >>> known_attributes({"uldp-sender": "gateway", "trace": "0af7"})
    {'uldp-sender': 'gateway'}
    """
    known = {name: _bounded(attributes[name]) for name in KNOWN_ATTRIBUTES if name in attributes}
    return known or NO_ATTRIBUTES


def _bounded(value: str) -> str:
    """Cut a value behind a whole character."""
    if 4 * len(value) <= MAX_VALUE_BYTES:  # as usual: no character has more bytes
        return value
    return value[:MAX_VALUE_BYTES].encode("utf-8", "surrogatepass")[:MAX_VALUE_BYTES].decode("utf-8", "ignore")
