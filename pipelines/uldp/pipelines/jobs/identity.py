"""The identity of a job: command, source and specs. It is kept beside the results, so that two jobs never mix there.

A directory of results is of one job, which may run again and comes to the same files. Another job would leave its own
panes, late and rejected reports among them, and the accounting would be that of nobody.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from uldp.schemas.collection import CollectionSpec

Command = Literal["backfill", "stream"]


@dataclass(frozen=True)
class JobIdentity:
    """What decides the counts of a job.

    Attributes:
        command: The command that runs it.
        source: What it reads, as the user named it.
        content: What was there, so that another stream of the same name is another.
        specs: By ``<collection>-v<version>``, the parts of a spec that decide what is counted, and where.
        resumes: Whether the job can go on where it was stopped: then it may begin to serve other specs, and refuse
            other reports. A job that reads all again would leave what it refused before, and count it as well.
    """

    command: Command
    source: str
    content: str
    specs: Mapping[str, Mapping[str, Any]]
    resumes: bool = False

    @classmethod
    def of(
        cls, command: Command, source: object, content: str, specs: Sequence[CollectionSpec], *, resumes: bool = False
    ) -> Self:
        """Identify a job by its source and its specs."""
        return cls(command, str(source), content, {name_of(spec): dict(_decisive(spec)) for spec in specs}, resumes)

    def encode(self) -> bytes:
        """Return the content of the file beside the results."""
        return json.dumps(asdict(self), indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read what ``encode`` wrote.

        Raises:
            ValueError: if it is something else.
        """
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict) or fields.keys() != cls.__dataclass_fields__.keys():
            raise ValueError("not the identity of a job")
        return cls(**fields)

    def __str__(self) -> str:
        return f"uldp {self.command} --from {self.source}"

    def join(self, later: Self) -> Self:
        """Return the identity of a job that goes on as ``later``: with the specs of both."""
        return type(self)(later.command, later.source, later.content, {**self.specs, **later.specs}, later.resumes)

    def difference(self, later: Self) -> str | None:
        """Say in which way ``later`` is another job than this one, whose results are there; None if it is the same."""
        if (self.command, self.resumes) != (later.command, later.resumes) or (
            self.content != later.content and self.source != later.source
        ):
            return f"holds the results of another job, {self}"
        if self.content != later.content:
            return f"holds the results of what {self.source} was before; it has changed since"
        if not self.resumes and (names := sorted(self.specs.keys() ^ later.specs.keys())):
            return f"holds the results of a job with other specs; {names[0]} is of one of both alone"
        changed = (
            f"holds the results of a job with another spec: {key} of {name} was {before} and is {now}"
            for name in sorted(self.specs.keys() & later.specs.keys())
            for key, before, now in _changes(self.specs[name], later.specs[name])
            if not self.resumes or key in _WINDOWS
        )
        return next(changed, None)


def name_of(spec: CollectionSpec) -> str:
    """Return the name of a version of a collection in paths."""
    return f"{spec.collection}-v{spec.version}"


_WINDOWS = ("window.size", "window.period")


def _decisive(spec: CollectionSpec) -> Iterator[tuple[str, Any]]:
    """What decides in which window a report counts, and whether: the channel is compared by the specs themselves."""
    data = spec.model_dump(mode="json")
    for section, keys in (
        ("window", ("size", "period", "allowed_lateness")),
        ("limits", ("max_clock_skew", "max_age")),
    ):
        yield from ((f"{section}.{key}", data[section][key]) for key in keys)
    yield "retired", spec.retired


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    return ((key, _said(before.get(key)), _said(now[key])) for key in now if before.get(key) != now[key])


def _said(value: object) -> str:
    """Write a value as a spec has it."""
    return "not set" if value is None else str(value).lower()
