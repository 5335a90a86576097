"""Which specs a job takes that has read messages already, and from when on their reports count.

What decides whether and where a report counts must not depend on when a job learns of a spec: a job that is killed
reads reports again, and so does a backfill. So a spec that is new to a job opens, and one that is retired closes, at a
publish time that no message has reached yet.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from uldp.collector.signals import limits_senders
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.device_half import changed_key
from uldp.schemas.specs.durations import format_duration, format_moment, milliseconds_of, moment_at


@dataclass(frozen=True)
class Admission:
    """The rules of a job."""

    sender_key: bool  # whether the job digests senders
    caps_senders: bool  # whether the graph of the job has the steps that limit the reports of a sender

    @classmethod
    def of(cls, specs: Collection[CollectionSpec]) -> Self:
        """Return the rules of a job that begins with these specs."""
        return cls(limits_senders(specs), any(spec.limits.cap_senders for spec in specs))

    def of_new(self, spec: CollectionSpec, latest: int | None) -> CollectionSpec:
        """Return a new spec, and when it opens; RequestError if a job that read up to ``latest`` cannot take it."""
        self._check_senders(spec)
        if latest is None:
            return spec
        after = moment_at(latest + 1)
        return spec.lasting(after if spec.opens is None else max(spec.opens, after), spec.closes)

    def of_known(self, before: CollectionSpec, now: CollectionSpec, latest: int) -> CollectionSpec:
        """Return a changed spec with times that can still be kept; RequestError if the job cannot take it."""
        self._check_senders(now)
        if (key := changed_key(dict(_fixed(before)), dict(_fixed(now)))) is not None:
            raise RequestError(f"{key} has changed, and the job has counted by it; raise the version")
        return self.lasting(before, now, latest)

    def lasting(self, before: CollectionSpec, now: CollectionSpec, latest: int) -> CollectionSpec:
        """Return a changed spec with the times at which it opens and closes; as ``of_known``, whatever has changed."""
        if now.opens is not None and (before.opens is None or now.opens > before.opens):
            opened = "" if before.opens is None else f", {format_moment(before.opens)}"
            raise RequestError(f"opens is later than when the job began to count{opened}; write that, or leave it out")
        if before.retired and not now.retired:
            raise RequestError("the version is retired, and stays so; raise the version")
        return now.lasting(before.opens, self._closing(before, now, latest)).model_copy(
            update={"retired": before.retired}
        )

    def _check_senders(self, spec: CollectionSpec) -> None:
        if spec.limits.cap_senders and not self.caps_senders:
            raise RequestError("limits.cap_senders: the job began without such a spec; start it again")
        if limits_senders([spec]) and not self.sender_key:
            raise RequestError("limits.max_reports_per_sender: the job began without such a spec; start it again")

    def _closing(self, before: CollectionSpec, now: CollectionSpec, latest: int) -> datetime | None:
        if before.retired:
            return before.closes
        closed = before.closes is not None and milliseconds_of(before.closes) <= latest
        if closed:
            if now.retired or (now.closes is not None and before.closes is not None and now.closes <= before.closes):
                return before.closes
            raise RequestError("the version is closed, and stays so; raise the version")
        if not now.retired and (now.closes is None or now.closes == before.closes):
            return now.closes
        wanted = latest + 1 if now.closes is None or now.retired else milliseconds_of(now.closes)
        return moment_at(max(wanted, latest + 1))


def _fixed(spec: CollectionSpec) -> Iterator[tuple[str, Any]]:
    """Yield what a collection keeps while a job has state of it, by key of the spec."""
    window = spec.window.model_dump(mode="json")
    yield from ((f"window.{key}", window[key]) for key in ("size", "period", "offset", "allowed_lateness"))
    yield "limits.max_clock_skew", format_duration(spec.limits.max_clock_skew)
    yield "limits.max_age", format_duration(spec.max_age)
    yield "limits.cap_senders", spec.limits.cap_senders
    if spec.limits.cap_senders:
        yield "limits.max_reports_per_sender", spec.limits.max_reports_per_sender
    yield "dedup", spec.dedup
    yield from spec.device_half.items()
