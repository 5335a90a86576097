"""The identity of a job: command, source and specs. A file beside the results keeps it, so that two jobs never mix.

A job that runs again writes the same files. With panes and records of two jobs, the accounting would fit neither.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import TypeAdapter

from uldp.collector.hashing import DEFAULT_SHARDS
from uldp.pipelines.results.files import ResultsError
from uldp.schemas.errors import DataError
from uldp.schemas.regular_files import open_regular, parse_json, read_bounded
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.durations import format_duration
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.folders import JOB

Command = Literal["backfill", "stream"]

#: The version of the state that a job keeps in checkpoints and savepoints. Raise it when a job cannot read the state of
#: the version before, for example because a class has moved: the state of a source holds the paths of its classes.
STATE = 13
#: The largest size of the file in bytes; it holds the parts of specs, whose files may have as many.
_MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class JobIdentity:
    """The properties of a job that determine its counts."""

    command: Command  # the command that runs the job
    source: str  # the source that the job reads, as the user named it
    content: str  # the content of the source, which distinguishes another stream of the same name
    #: By ``<collection>-v<version>``, the parts of a spec that decide which reports are counted, and where.
    specs: Mapping[str, Mapping[str, Any]]
    #: Whether the job can resume where it was stopped. Such a job may then serve other specs and reject other reports.
    #: A job that reads its source again may not: its earlier rejected records would stay, and it would count these
    #: reports too.
    resumes: bool = False
    #: Whether the job may run on after its command has ended, as on a cluster. A job that resumes is one.
    apart: bool = False
    state: int = STATE  # the version of the job's state, see ``STATE``
    #: By id, as text, the schema that an id of a schema registry means; see ``Aggregate``.
    registry_ids: Mapping[str, str] = field(default_factory=dict)
    shards: int = DEFAULT_SHARDS  # by which the state is divided; see ``Aggregate``
    #: The places of rows of estimates that the job was ever started with, as ``RowSink.recorded``.
    sinks: tuple[str, ...] = ()
    #: The secret that decides which ids the state of a shard holds; see ``Aggregate``. It is drawn when the job first
    #: runs. No other property of a job is secret.
    shard_key: int = field(default_factory=partial(secrets.randbits, 128), repr=False)

    @classmethod
    def of(
        cls,
        command: Command,
        source: object,
        content: str,
        specs: Sequence[CollectionSpec],
        *,
        resumes: bool = False,
        apart: bool = False,
        registry_ids: Mapping[int, str] | None = None,
        shards: int = DEFAULT_SHARDS,
        sinks: Sequence[str] = (),
    ) -> Self:
        """Return the identity of a job with this command, source and specs."""
        decisive = {name_of(spec): dict(_decisive(spec)) for spec in specs}
        ids = {str(number): schema for number, schema in (registry_ids or {}).items()}
        apart = resumes or apart
        state: dict[str, Any] = {"registry_ids": ids, "shards": shards, "sinks": tuple(sinks)}
        return cls(command, str(source), content, decisive, resumes, apart, **state)

    def encode(self) -> bytes:
        """Return the content of the identity file beside the results."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read an identity that ``encode`` wrote; ValueError if it is not the identity of a job."""
        with suppress(ValueError):  # ValidationError is one
            fields = parse_json(text)
            # A job of an earlier version did not record its shards and sinks.
            if isinstance(fields, dict) and {"shards", "sinks", *fields} == cls.__dataclass_fields__.keys():
                return TypeAdapter(cls).validate_python(fields)
        raise DataError("not the identity of a job")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file of an identity; OSError if it is not opened, ValueError if it is huge, or no identity."""
        with open_regular(path) as file:
            return cls.decode(read_bounded(file, _MAX_BYTES))

    def __str__(self) -> str:
        return f"uldp {self.command} --from {self.source}"

    def join(self, later: Self) -> Self:
        """Return the identity of this job continued as ``later``: specs and sinks of both, and the key of this job."""
        sinks = tuple(dict.fromkeys((*self.sinks, *later.sinks)))
        return replace(later, specs={**self.specs, **later.specs}, sinks=sinks, shard_key=self.shard_key)

    def difference(self, later: Self) -> str | None:
        """Return how ``later`` differs from this job, which wrote the results; None if they are the same job."""
        if (self.command, self.resumes) != (later.command, later.resumes) or (
            self.content != later.content and self.source != later.source
        ):
            return f"holds the results of another job, {self}"
        if self.content != later.content:
            return f"holds results of {self.source}, which has changed since then"
        if self.resumes and self.shards != later.shards:
            return (
                f"holds the results of a job whose state is in {self.shards:,} shards, which no savepoint changes; add"
                f" --shards {self.shards}, or begin a new job, whose results uldp merge joins"
            )
        if not self.resumes and (names := sorted(self.specs.keys() ^ later.specs.keys())):
            return f"holds the results of a job with other specs; only one of the two jobs has {names[0]}"
        if not self.resumes and self.registry_ids != later.registry_ids:
            return "holds the results of a job with other ids of a schema registry"
        changed = (
            f"holds the results of a job with another spec: {key} of {name} was {before} and is {now}"
            for name in sorted(self.specs.keys() & later.specs.keys())
            for key, before, now in _changes(self.specs[name], later.specs[name])
            if not self.resumes or key in _WINDOWS
        )
        return next(changed, None)


def job_of(folder: Path) -> JobIdentity | None:
    """Read the identity of the job of a folder; None if the folder has none; ResultsError if it cannot be read."""
    path = folder / JOB
    try:
        return JobIdentity.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResultsError(
            f"{plain(str(path))}: {reason}; restore the original file, or choose another --to"
        ) from error


def name_of(spec: CollectionSpec) -> str:
    """Return the name that paths use for a version of a collection."""
    return f"{spec.collection}-v{spec.version}"


_WINDOWS = ("window.size", "window.period", "window.offset")


def _decisive(spec: CollectionSpec) -> Iterator[tuple[str, Any]]:
    """Yield the fields, beside the half of devices, that decide if and in which window a report counts."""
    data = spec.model_dump(mode="json")
    yield from ((f"window.{key}", data["window"][key]) for key in ("size", "period", "offset", "allowed_lateness"))
    yield "limits.max_clock_skew", data["limits"]["max_clock_skew"]
    yield "limits.max_age", format_duration(spec.max_age)
    yield "retired", spec.retired


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    return ((key, _said(before.get(key)), _said(now[key])) for key in now if before.get(key) != now[key])


def _said(value: object) -> str:
    """Write a value as it appears in a spec."""
    return "not set" if value is None else str(value).lower()
