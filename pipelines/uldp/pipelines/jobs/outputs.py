"""Prepare a results directory before a job: lock, identity, specs."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from uldp.collector.signals import limits_senders
from uldp.pipelines.jobs.abandoned import clear, has_panes, is_abandoned
from uldp.pipelines.jobs.identity import JobIdentity, job_of
from uldp.pipelines.jobs.kept_specs import is_kept, keep_specs, kept_file
from uldp.pipelines.jobs.sender_key import read_sender_key, stored_sender_key
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.specs import load_kept
from uldp.schemas.locks import open_folder, try_lock
from uldp.schemas.regular_files import is_at
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.device_half import changed_key
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.io.durable_files import make_folder, remove_aside, write_file
from uldp.transforms.io.folders import JOB, Kind, below, is_remote, kind_of, or_restore
from uldp.transforms.io.listing import paths_below
from uldp.transforms.io.remote import check_scheme, copy_below

#: How long to wait for a directory that another process has locked, because a stopped job needs some time to end.
LOCK_SECONDS = 20.0


@contextmanager
def locked(out: Path, option: str) -> Iterator[None]:
    """Create a directory, which ``option`` names, and lock it until the context or this process ends.

    The lock is on the directory itself, because a file in it could be removed meanwhile. ResultsError if another
    process holds it for more than ``LOCK_SECONDS``, or the directory was removed or replaced. NoLocksError if the file
    system has no locks of folders.
    """
    descriptor = _lock(out, option)
    try:
        yield
        if not is_at(descriptor, out):
            raise ResultsError(
                f"{out}: was removed or replaced while the job wrote to it, so results are missing; run the job again"
                " into a new directory"
            )
    finally:
        os.close(descriptor)


def _lock(out: Path, option: str) -> int:
    """Return the descriptor of the directory that is at ``out`` once its lock is held."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        with suppress(FileNotFoundError):  # not made yet, or removed again
            descriptor = open_folder(out)
            if try_lock(descriptor, out) and is_at(descriptor, out):
                return descriptor
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise ResultsError(f"{out}: another job is writing to it; wait for its end, or choose another {option}")
            time.sleep(0.1)
        make_folder(out.absolute())


@dataclass(frozen=True)
class Claim:
    """The places of a job's results, and the secrets of the job."""

    results: str  # the location of the results directory for the workers: the URL, or an absolute path
    #: The location of the directory of late and rejected reports, and of cells of few reports; it may be the same.
    private: str
    shard_key: int = field(repr=False)  # the key that the job gives to ``Aggregate``, now and when it resumes
    sender_key: bytes | None = field(default=None, repr=False)  # likewise; None if no spec limits reports per sender

    def keyed(self, aggregate: Aggregate) -> Aggregate:
        """Return a transform with the keys of the job."""
        return replace(aggregate, shard_key=self.shard_key, sender_key=self.sender_key)


@contextmanager
def claimed_both(
    out: str,
    private: str | None,
    specs: Sequence[CollectionSpec],
    job: JobIdentity,
    *,
    from_savepoint: bool = False,
    sender_key: Path | None = None,
    is_over: Callable[[], bool] = lambda: False,
    keep: bool = True,
) -> Iterator[Claim]:
    """Claim the results directory of a job, and its directory of late and rejected reports if that is another one.

    A private directory is a results directory of the same job, without specs, so commands take it as one. ``is_over``
    says that a failed backfill writes no more, and gives back what has no pane. ``keep`` writes the specs. Errors are
    those of ``claimed`` and of the key of senders.
    """
    place = out if private is None else private
    needed = limits_senders(specs)
    key = read_sender_key(sender_key) if sender_key is not None else None
    if needed and key is None and is_remote(place):
        stored_sender_key(place)  # refuse before anything is written
    left = None if is_remote(out) else job_of(Path(out))
    with ExitStack() as stack:
        results, begun = stack.enter_context(claimed(out, specs if keep else (), job, from_savepoint=from_savepoint))
        new = [results] if begun.shard_key == job.shard_key else []
        local = results
        if not _same_place(out, place):
            if not is_remote(place):
                private_place = Path(place).absolute()
                make_folder(private_place.parent)
                make_folder(private_place, 0o700)
            left_key = left.shard_key if left is not None and new else None
            claim = claimed(place, (), begun, option="--private-to", left_key=left_key)
            local, of_private = stack.enter_context(claim)
            new += [local] if new and of_private.shard_key == begun.shard_key else []
        if needed and key is None:
            key = stored_sender_key(local)
        try:
            yield Claim(results, local, begun.shard_key, key if needed else None)
        except Exception:
            with suppress(Exception):  # report the error that ended the job instead
                if job.command == "backfill" and is_over() and not has_panes(results):
                    for place in new:
                        clear(place)
            raise


def _same_place(one: str, other: str) -> bool:
    if is_remote(one) or is_remote(other):
        return one.rstrip("/") == other.rstrip("/")
    return Path(one).resolve() == Path(other).resolve()


@contextmanager
def claimed(
    out: str,
    specs: Sequence[CollectionSpec],
    job: JobIdentity,
    *,
    option: str = "--to",
    from_savepoint: bool = False,
    left_key: int | None = None,
) -> Iterator[tuple[str, JobIdentity]]:
    """Prepare the results directory of a job: write the job's identity and the specs that readers of the results need.

    Yields its location for workers, and the identity with the key of the first run. A directory on this machine is
    locked until the context ends; only its processes see the lock. It is new, empty, without a result, or of the same
    job, whose state is used ``from_savepoint``; ``left_key`` is that of a job whose results this one has taken.

    ResultsError, before anything is written, if it holds anything else, another process writes to it, its counts come
    from another device half, or its state or key cannot be used. EndpointError if the URL's file system returns an
    error.
    """
    with ExitStack() as stack:
        local = Path(out)
        if is_remote(out):
            check_scheme(out)
            local = Path(stack.enter_context(TemporaryDirectory()))
            for pattern in (JOB, "specs/*/*"):
                copy_below(out, pattern, local)
        else:
            _refuse_others(local, option)
            stack.enter_context(locked(local, option))
        new = [spec for spec in specs if not is_kept(spec, local)]
        try:
            _refuse_other_results(out, local, job, new, option)
            if from_savepoint:
                _refuse_other_state(out, local, job)
        except ResultsError:
            left = job_of(local)
            its_own = option == "--to" or (left is not None and left.shard_key == left_key)
            if is_remote(out) or from_savepoint or not (its_own and is_abandoned(local, left)):
                raise
            clear(out)
            new = [*specs]
        if not is_remote(out):
            remove_aside(local)  # the lock keeps out every other writer
        before = job_of(local)
        begun = job if before is None else before.join(job)
        # Write the identity before the specs, because specs alone do not name their job. It holds the job's key.
        write_file(below(out, JOB), begun.encode(), private=True)
        keep_specs(out, new)
        yield (out if is_remote(out) else str(local.absolute())), begun


def _refuse_others(out: Path, option: str) -> None:
    if out.exists() and (kind := kind_of(out)) not in (Kind.RESULTS, Kind.EMPTY):
        raise ResultsError(f"{out}: holds {kind}; choose a new or empty directory for {option}{or_restore(out)}")


def _refuse_other_results(out: str, local: Path, job: JobIdentity, new: Sequence[CollectionSpec], option: str) -> None:
    """Refuse the results of another job, or of another device half than that of new or changed specs."""
    before = job_of(local)
    if before is None and paths_below(local, "specs/*"):
        raise ResultsError(f"{out}: holds results, but no {JOB} that names their job; choose another {option}")
    # First of all: another directory, which the next error advises, would not mend a change that devices must know.
    _refuse_other_device_halves(out, local, new)
    difference = None if before is None else before.difference(job)
    if difference is not None:
        raise ResultsError(f"{out}: {difference}. Choose another {option}, or remove {out}")


def _refuse_other_state(out: str, local: Path, job: JobIdentity) -> None:
    before = job_of(local)
    if before is None:
        raise ResultsError(
            f"{out}: has no {JOB} with the key of the job that wrote the savepoint, so copies of its reports would be"
            " counted again; give the --to of that job, or leave out --savepoint_path"
        )
    if before.state != job.state:
        raise ResultsError(
            f"{out}: holds the results of a job with state of version {before.state}, and this is version {job.state},"
            " which cannot read its savepoint; leave out --savepoint_path, and choose another --to"
        )


def _refuse_other_device_halves(out: str, folder: Path, specs: Sequence[CollectionSpec]) -> None:
    for spec in specs:
        if not (file := kept_file(folder, spec)).exists():
            continue
        before = load_kept(file)
        name = f"{spec.collection} version {spec.version}"
        if (key := changed_key(before.device_half, spec.device_half)) is not None:
            raise ResultsError(
                f"{out}: holds results of {name} with another {key}; raise the spec's version, or choose another --to"
            )
        if (cut := spec.window.splits(before.window)) is not None:
            raise ResultsError(f"{out}: {name}: {cut}; another --to would count its reports in wrong windows")
