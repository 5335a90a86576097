"""Subscriptions and topics of Pub/Sub as endpoints: jobs read the former and write to the latter."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.schemas.errors import EndpointError
from uldp.schemas.records import Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.endpoints import Access, Endpoint, Following
from uldp.transforms.io.json_rows import Keyed
from uldp.transforms.io.pubsub.client import Publisher
from uldp.transforms.io.pubsub.source import PublishTo, PubSubSource, ReadSubscription
from uldp.transforms.io.pubsub.subscription import Subscription, Topic

_READ_INSTEAD = "jobs only write to a topic; read one of its subscriptions, pubsub:projects/PROJECT/subscriptions/NAME"
_WRITE_INSTEAD = "jobs only read a subscription; write to its topic, pubsub:projects/PROJECT/topics/NAME"
_TIMESTAMP, _ID, _PULLERS = "timestamp_attribute", "id_label", "pullers"


def parse(uri: str, config: Path | None = None) -> "SubscriptionEndpoint | TopicEndpoint":
    """Read ``pubsub:projects/P/subscriptions/S`` or ``pubsub:projects/P/topics/T``. No config is needed.

    Settings may follow after ``?``: ``timestamp_attribute``, and for subscriptions ``id_label`` and ``pullers`` too.
    EndpointError if the form, a setting or its value is unknown.
    """
    if f"/{Topic.KIND}/" in uri.partition("?")[0]:
        name, settings = split_settings(uri, [_TIMESTAMP])
        return TopicEndpoint(Topic.parse(name), attribute_name(uri, settings, _TIMESTAMP))
    name, settings = split_settings(uri, [_TIMESTAMP, _ID, _PULLERS])
    return SubscriptionEndpoint(
        Subscription.parse(name),
        attribute_name(uri, settings, _TIMESTAMP),
        attribute_name(uri, settings, _ID),
        pullers(uri, settings),
    )


def _uri(name: object, **settings: Any) -> str:
    given = {key: value for key, value in settings.items() if value is not None}
    return f"{name}?{urlencode(given)}" if given else str(name)


@dataclass(frozen=True)
class SubscriptionEndpoint(Endpoint):
    """A subscription that is followed."""

    subscription: Subscription
    timestamp_attribute: str | None = None  # the attribute that holds the publish time; see ``PubSubSource``
    id_label: str | None = None  # the attribute by which Dataflow drops messages that were published twice
    pullers: int | None = None  # how many readers pull at once; None for the default of ``PubSubSource``

    needs_checkpoints = True

    def __str__(self) -> str:
        return _uri(
            self.subscription,
            timestamp_attribute=self.timestamp_attribute,
            id_label=self.id_label,
            pullers=self.pullers,
        )

    def check(self, access: Access) -> None:
        if access == "WRITE":
            raise EndpointError(f"{self}: {_WRITE_INSTEAD}")
        self.subscription.check()

    def check_following(self, following: Following) -> None:
        """Refuse settings that the job would not use, then ask Pub/Sub; EndpointError as ``Subscription.check``."""
        if self.id_label is not None and not following.native:
            raise EndpointError(
                f"{self}: only Dataflow uses {_ID}; leave it out, because the job drops reports with the same id anyway"
            )
        if self.pullers is not None and following.native:
            raise EndpointError(f"{self}: Dataflow chooses the number of its readers itself; leave out {_PULLERS}")
        if self.pullers is not None and following.simulated_clock:
            raise EndpointError(f"{self}: one reader pulls all messages of a simulation; leave out {_PULLERS}")
        self.check("READ")

    def identity(self) -> str:
        """Return the path: Pub/Sub gives a subscription nothing else."""
        return self.subscription.path

    def read(self, pipeline: beam.Pipeline, following: Following) -> PCollection[Message | Chunk]:
        source = PubSubSource(
            self.subscription, following.delay_ms, self.timestamp_attribute, simulated_clock=following.simulated_clock
        )
        if self.pullers is not None:
            source = replace(source, pullers=self.pullers)
        reading = ReadSubscription(source, following.native, self.id_label)
        messages: PCollection[Message | Chunk] = pipeline | "ReadPubSub" >> reading
        return messages


@dataclass(frozen=True)
class TopicEndpoint(Endpoint):
    """A topic that is published to."""

    topic: Topic
    #: The attribute in which ``writing`` gives each message its publish time, in milliseconds since 1970; None to let
    #: Pub/Sub set it.
    timestamp_attribute: str | None = None

    only_use = _READ_INSTEAD

    def __str__(self) -> str:
        return _uri(self.topic, timestamp_attribute=self.timestamp_attribute)

    def check(self, access: Access) -> None:
        if access == "READ":
            raise EndpointError(f"{self}: {_READ_INSTEAD}")
        if self.timestamp_attribute is not None:
            raise EndpointError(f"{self}: the records of a job have no publish time; leave out {_TIMESTAMP}")
        self.topic.check()

    def publish(self, records: PCollection[Keyed], *, native: bool) -> None:
        attributed = beam.MapTuple(_attributed).with_output_types(tuple[bytes, dict[str, str]])
        bodies = records | "KeyAsAttribute" >> attributed
        _ = bodies | "PublishTo" >> PublishTo(self.topic, native)

    @contextmanager
    def writing(self, *, simulated_clock: bool) -> Iterator[Publisher]:
        """Publish with publish times in an attribute, which a simulation must have, or with Pub/Sub's own."""
        if simulated_clock and self.timestamp_attribute is None:
            raise EndpointError(
                f"{self}: Pub/Sub sets publish times itself; add ?{_TIMESTAMP}=NAME here and to the URI of the"
                " subscription, so that an attribute holds the simulated times"
            )
        self.topic.check()
        writer = Publisher(self.topic, self.timestamp_attribute)
        yield writer
        writer.close()


def _attributed(key: bytes, body: bytes) -> tuple[bytes, dict[str, str]]:
    return body, {"key": key.decode()}


#: The largest number of readers that may pull a subscription at once; each has a connection.
MAX_PULLERS = 100
#: Bytes of an attribute's name that Pub/Sub accepts, and the prefix that it keeps for itself.
_MAX_NAME, _RESERVED = 256, "goog"


def split_settings(uri: str, known: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """Split a URI into the part before its query, and the settings of the query; EndpointError if one is not known.

    >>> split_settings("pubsub:projects/example/topics/reports?timestamp_attribute=sent_at", ["timestamp_attribute"])
    ('pubsub:projects/example/topics/reports', {'timestamp_attribute': 'sent_at'})
    """
    name, found, query = uri.partition("?")
    settings: dict[str, str] = {}
    if not found:
        return name, settings
    expected = f"known settings: {', '.join(sorted(known))}"
    try:
        pairs = parse_qsl(query or "&", keep_blank_values=True, strict_parsing=True, errors="strict")
    except ValueError:
        raise EndpointError(f"{uri!r}: the part after '?' is not NAME=VALUE&...; {expected}") from None
    for key, value in pairs:
        if key not in known:
            raise EndpointError(f"{uri!r}: unknown setting {key!r}; {expected}")
        if key in settings:
            raise EndpointError(f"{uri!r}: {key} comes twice; keep one")
        if not value:
            raise EndpointError(f"{uri!r}: {key} has no value; write {key}=VALUE, or leave it out")
        settings[key] = value
    return name, settings


def attribute_name(uri: str, settings: Mapping[str, str], key: str) -> str | None:
    """Return the attribute that a setting names, or None; EndpointError if Pub/Sub accepts no such name."""
    name = settings.get(key)
    if name is not None and (len(name.encode()) > _MAX_NAME or name.startswith(_RESERVED)):
        raise EndpointError(
            f"{uri!r}: {key}: no attribute can have this name; use at most {_MAX_NAME} bytes, and no {_RESERVED!r} at"
            " the beginning"
        )
    return name


def pullers(uri: str, settings: Mapping[str, str]) -> int | None:
    """Return the number of readers that pull at once, or None; EndpointError if it is not in 1 to ``MAX_PULLERS``."""
    text = settings.get("pullers")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MAX_PULLERS):
        raise EndpointError(f"{uri!r}: pullers is {text!r}; write a number from 1 to {MAX_PULLERS}")
    return int(text)
