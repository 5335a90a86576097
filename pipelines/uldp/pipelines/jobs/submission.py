"""The specs with which a job is submitted: a cluster counts by these until the job is submitted again.

A job that goes on from a savepoint has read messages, and rejected those of specs that it did not have. So a spec that
is new to it opens, and one that is retired closes, behind all that it may have read; see ``Admission``, whose law holds
on one machine too. The results keep these times before the job runs, so a backfill by the kept specs counts the same.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple

from uldp.collector.admission import Admission
from uldp.pipelines.jobs.abandoned import has_results
from uldp.pipelines.jobs.identity import name_of
from uldp.pipelines.jobs.kept_specs import kept_specs
from uldp.pipelines.jobs.spec_folder import SpecFolder, news_of
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.collection import CollectionSpec

#: How far the clock of a worker may be ahead of the clock of the command, in milliseconds.
AHEAD_MS = 60_000


class Submitted(NamedTuple):
    """The specs of a job that is submitted, and a line about each that is new or has changed."""

    specs: Sequence[CollectionSpec]
    lines: Sequence[str]


def latest_read(out: str, private: str | None, *, from_savepoint: bool) -> int | None:
    """Return an upper bound, in ms, of publish times that earlier runs may have read; None without a trace of one.

    On a real clock, no reader gives a message a publish time behind the present. EndpointError if a place of results
    cannot be listed.
    """
    if from_savepoint or any(map(has_results, {out, private or out})):
        return time.time_ns() // 1_000_000 + AHEAD_MS
    return None


def submitted(
    specs: Sequence[CollectionSpec], folder: SpecFolder | None, out: str, latest: int | None, *, simulated_clock: bool
) -> Submitted:
    """Return the specs with which a job is submitted, with the times at which they open and close.

    RequestError if the job cannot take a spec; or if one would open or close, and an earlier run has read messages by a
    simulated clock, which bounds nothing. EndpointError or SpecError if specs cannot be read.
    """
    kept, admission = kept_specs(out), Admission.of(specs)
    if folder is not None:
        looked = folder.submitted(admission, latest)
        read = (
            f"{folder.path}: is read at submission; to change specs, stop the job with a savepoint and submit it again"
        )
        specs, lines = [*folder.specs.values()], [*looked.lines, read]
    elif latest is not None:
        specs, lines = [_timed(admission, kept.get(spec.key), spec, latest) for spec in specs], []
    else:
        return Submitted(specs, [])
    before = {key: (spec.opens, spec.closes) for key, spec in kept.items()}
    moved = [spec for spec in specs if before.get(spec.key) != (spec.opens, spec.closes)]
    if moved and simulated_clock and latest is not None:
        raise RequestError(
            f"{name_of(moved[0])}: opens or closes behind what the job has read, which nobody knows of a simulated"
            " clock; choose another --to, without a savepoint"
        )
    return Submitted(specs, lines if folder is not None else [news_of(kept.get(spec.key), spec) for spec in moved])


def _timed(admission: Admission, before: CollectionSpec | None, spec: CollectionSpec, latest: int) -> CollectionSpec:
    try:
        return admission.of_new(spec, latest) if before is None else admission.lasting(before, spec, latest)
    except RequestError as error:
        raise RequestError(f"{name_of(spec)}: {error}") from error
