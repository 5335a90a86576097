"""Settings in the query of a URI of Pub/Sub, such as ``?timestamp_attribute=sent_at&pullers=4``."""

from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl

from uldp.schemas.errors import EndpointError

#: The largest number of readers that may pull a subscription at once; each has a connection.
MAX_PULLERS = 100
#: Bytes of an attribute's name that Pub/Sub accepts, and the prefix that it keeps for itself.
_MAX_NAME, _RESERVED = 256, "goog"


def split_settings(uri: str, known: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Split a URI into the part before its query, and the settings of the query.

    >>> split_settings("pubsub:projects/example/topics/reports?timestamp_attribute=sent_at", ["timestamp_attribute"])
    ('pubsub:projects/example/topics/reports', {'timestamp_attribute': 'sent_at'})

    Raises:
        EndpointError: if a setting is not one of ``known``, has no value, or comes twice.
    """
    name, found, query = uri.partition("?")
    settings: dict[str, str] = {}
    if not found:
        return name, settings
    try:
        pairs = parse_qsl(query or "&", keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise EndpointError(f"{uri!r}: the part after '?' is not NAME=VALUE&...; {_list(known)}") from None
    for key, value in pairs:
        if key not in known:
            raise EndpointError(f"{uri!r}: unknown setting {key!r}; {_list(known)}")
        if key in settings:
            raise EndpointError(f"{uri!r}: {key} comes twice; keep one")
        if not value:
            raise EndpointError(f"{uri!r}: {key} has no value; write {key}=VALUE, or leave it out")
        settings[key] = value
    return name, settings


def attribute_name(uri: str, settings: Mapping[str, str], key: str) -> str | None:
    """Return the name of an attribute that a setting gives, or None if it is not set.

    Raises:
        EndpointError: if Pub/Sub accepts no attribute of this name.
    """
    name = settings.get(key)
    if name is not None and (len(name.encode()) > _MAX_NAME or name.startswith(_RESERVED)):
        raise EndpointError(
            f"{uri!r}: {key}: no attribute can have this name; use at most {_MAX_NAME} bytes, and no {_RESERVED!r} at"
            " the beginning"
        )
    return name


def pullers(uri: str, settings: Mapping[str, str]) -> int | None:
    """Return the number of readers that pull at once, or None if it is not set.

    Raises:
        EndpointError: if it is not a number from 1 to ``MAX_PULLERS``.
    """
    text = settings.get("pullers")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MAX_PULLERS):
        raise EndpointError(f"{uri!r}: pullers is {text!r}; write a number from 1 to {MAX_PULLERS}")
    return int(text)


def _list(known: Collection[str]) -> str:
    return f"known settings: {', '.join(sorted(known))}"
