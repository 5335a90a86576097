"""Endpoints: where messages come from and where they go, each named by a URI.

A connector is a subclass of ``Endpoint``, and a function that makes one of a URI and the path of a file of settings, or
None; see ``uldp.transforms.io.schemes``.
"""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Literal, NoReturn, Protocol

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp.collector.shared_specs import SharedSpecs
from uldp.schemas.codec.container import EncodedMessages
from uldp.schemas.errors import EndpointError
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message
from uldp.transforms.io.chunks import Chunk
from uldp.transforms.io.json_rows import Keyed, keyed_rows
from uldp.transforms.io.listing import LeftOut, Reason
from uldp.transforms.io.schemes import connectors, scheme_of

#: The module of endpoints that no connector has: paths and URLs of files.
_FILES = "uldp.transforms.io.files"

#: The access that a job needs.
Access = Literal["READ", "WRITE"]


@dataclass(frozen=True)
class Following:
    """How a job follows a stream.

    Attributes:
        delay_ms: For how long after a message another one may arrive that was published before it.
        simulated_clock: Whether publish times are a simulation's. Then an idle stream says nothing about the time.
        native: Whether the runner's own connector is used where there is one.
        slots: How many parts of the job run at once, if the user chose that.
    """

    delay_ms: int
    simulated_clock: bool = False
    native: bool = False
    slots: int = 0


class Writer(Protocol):
    """Appends messages to a stream; ``simulated_clock`` says whether it takes a simulation's publish times."""

    @property
    def simulated_clock(self) -> bool:
        """As in the class."""

    def append(self, messages: Sequence[Message] | EncodedMessages) -> object:
        """Publish messages, in the order of their publish times."""

    def now(self) -> int:
        """Return the present by the stream's clock, in milliseconds."""

    def flush(self) -> None:
        """Wait until all messages have been accepted; ValueError if any was refused."""

    def give_up(self, seconds: float) -> None:
        """Wait for brokers so many seconds at most, because the process ends; other threads' calls may raise then."""

    def close(self) -> None:
        """Do as ``flush``; a local stream then ends."""


class TopicWriter(Writer):
    """A writer to a topic, by the clock of this machine."""

    simulated_clock = True
    gives_up = False  # whether nobody waits for what is left, because the process ends

    def now(self) -> int:
        return int(time.time() * 1000)

    def close(self) -> None:
        """Do as ``flush``, unless it gave up."""
        if not self.gives_up:
            self.flush()


class Endpoint(ABC):
    """A place that a URI names. It refuses what it cannot do; a subclass overrides what it can."""

    #: Whether the broker forgets what a job has acknowledged, so that the job's runner must keep checkpoints.
    needs_checkpoints: ClassVar[bool] = False
    #: Whether only this machine has the endpoint, so that no worker of another machine can write to it.
    only_here: ClassVar[bool] = False
    #: If the endpoint has a single use, the text that says so in the error about any other use.
    only_use: ClassVar[str | None] = None

    @abstractmethod
    def __str__(self) -> str:
        """Return the URI."""

    @property
    def name(self) -> str:
        """The name of the endpoint, which is the same from each directory of this machine."""
        return str(self)

    def _refuse(self, why: str) -> NoReturn:
        raise EndpointError(f"{self}: {self.only_use or why}")

    def check(self, access: Access) -> None:
        """Ask whether the endpoint is there and gives access; ValueError, which says what to do, if not."""
        self._refuse("cannot be read or written to")

    def check_following(self, following: Following) -> None:
        """Check as ``check`` for a job that follows the endpoint, and refuse settings that the job would not use."""
        self.check("READ")

    def check_estimates(self) -> None:
        """Check as ``check`` for a job that publishes estimates."""
        self.check("WRITE")

    def identity(self) -> str:
        """Return an id that another endpoint of the same name does not have."""
        return self.name

    def content(self) -> str:
        """Return a name for all messages that are there now; of a stream, each reading has another one."""
        return secrets.token_hex(16)

    def left_out(self) -> Mapping[Reason, LeftOut]:
        """Return the files that are there, but are not read, by reason."""
        return {}

    def damage(self) -> Sequence[str]:
        """Return a line about each file that cannot be read. This takes as long as reading the messages."""
        return ()

    def overlaps(self, out: str) -> bool:
        """Say whether a directory of results is in the endpoint, or the endpoint in that directory."""
        return False

    def read_whole(self, pipeline: beam.Pipeline) -> PCollection[Chunk]:
        """Read all messages that are there now; ValueError if the endpoint is not there, or has no end."""
        self._refuse("has no end, so uldp backfill cannot count it; follow it with uldp stream")

    def read(self, pipeline: beam.Pipeline, following: Following) -> PCollection[Message | Chunk]:
        """Read the messages that are there, and all that arrive later: an unbounded collection."""
        self._refuse("cannot be followed; count its messages with uldp backfill")

    def publish(self, records: PCollection[Keyed], *, native: bool) -> None:
        """Publish records from a pipeline. ``native`` lets the runner use its own connector where there is one."""
        self._refuse("takes no records of a job; name a topic")

    def publish_estimates(self, estimates: PCollection[Estimate], specs: SharedSpecs, *, native: bool) -> None:
        """Publish the rows of estimates from a pipeline: here, each as a record; see ``keyed_rows``."""
        keyed = beam.FlatMap(partial(keyed_rows, specs)).with_output_types(Keyed)
        self.publish(estimates | "KeyRecords" >> keyed, native=native)

    def writing(self, *, simulated_clock: bool) -> AbstractContextManager[Writer]:
        """Append messages from this process until the context ends, and all are accepted; ValueError if it cannot."""
        self._refuse("cannot be written to; name a directory on this machine, or a topic")


def parse_endpoint(uri: str, config: Path | None = None) -> Endpoint:
    """Read a URI of a connector, or of files: a URL or a path; ValueError if it begins as one, and is none."""
    scheme = scheme_of(uri)
    parse = import_module(_FILES).parse if scheme is None else connectors()[scheme].load()
    endpoint = parse(uri, config)
    if not isinstance(endpoint, Endpoint):
        raise TypeError(f"the connector of {scheme}: made a {type(endpoint).__name__}, not an Endpoint")
    return endpoint


def records_of(messages: Sequence[Message] | EncodedMessages) -> Iterator[Message]:
    """Give messages one by one, encoded or not."""
    return iter(messages.decode() if isinstance(messages, EncodedMessages) else messages)
