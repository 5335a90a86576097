"""The server that takes messages: its stream, its address, and its end."""

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from uldp.pipelines.intake.app import PATH, Intake, Tables, application
from uldp.pipelines.intake.clock import SteadyClock
from uldp.pipelines.intake.commits import Commits
from uldp.pipelines.intake.edge import RateLimit, origin_of
from uldp.pipelines.intake.judging import Judge
from uldp.pipelines.intake.post_metrics import PostMetrics
from uldp.pipelines.intake.refused import RefusedSample
from uldp.pipelines.intake.tokens import Tokens
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.pipelines.web.server import bound, is_loopback, server_of, url_of
from uldp.schemas.errors import EndpointError, RequestError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import plain, quote
from uldp.transforms.io.endpoints import Endpoint, Writer
from uldp.transforms.io.files import FilesEndpoint
from uldp.transforms.io.listing import is_empty
from uldp.transforms.io.local.begun import remove_abandoned
from uldp.transforms.io.local.stream import UNFINISHED, LocalStream
from uldp.transforms.io.message_files import StreamError

#: So many bytes stay free, or this share of the disk, if that is less.
_FLOOR, _SHARE = 1 << 30, 0.05


class DiskSpace:
    """Looks at the disk of a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def free(self) -> int:
        """Return the bytes that are free."""
        return shutil.disk_usage(self._path).free

    def check(self) -> None:
        """Do nothing while the disk has enough free space; then raise EndpointError."""
        disk = shutil.disk_usage(self._path)
        floor = min(_FLOOR, int(_SHARE * disk.total))
        if disk.free < floor:
            raise EndpointError(
                f"{plain(str(self._path))}: {disk.free >> 20:,} MiB of its disk are free, and the server leaves"
                f" {floor >> 20:,} to others; free some space"
            )


_LOG = logging.getLogger(__name__)
#: The bytes of messages that may wait, and the connections that may be open; see ``Places``.
#: Each connection may hold a message that is coming, so both together take 576 MiB at the most.
MOST_WAITING, MOST_CONNECTIONS = 64 << 20, 512
#: Seconds that a broker has, when the server ends, to take what is under way.
CLOSE_SECONDS = 10.0


def collect(
    specs: Sequence[CollectionSpec] | SpecFolder,
    to: Endpoint,
    *,
    host: str,
    port: int,
    tokens: Tokens | None,
    origins: Sequence[str],
    megabytes: int,
    refused: Path | None,
    registry_ids: Mapping[int, str] | None,
    say: Callable[[str], None],
    until: Callable[[Callable[[], object]], None],
) -> None:
    """Take messages until a signal comes; each that was taken is in the stream then.

    A local stream is begun if it is not there, and never closed. Port 0 is any. ``megabytes`` are those of a sender
    from an address in a minute, and ``until`` is called with what ends the server. RequestError if others would reach
    the address without tokens, if an origin is none, or the folder has no spec; EndpointError if the port, the stream
    or the folder cannot be used.
    """
    if tokens is None and not is_loopback(host):
        raise RequestError(
            f"--host {quote(host)}: others reach this address, so senders need tokens; write a table of token,sender,"
            " and name it by --tokens"
        )
    origins = [origin_of(each) for each in origins]
    judge = Judge.following(specs, say, registry_ids) if isinstance(specs, SpecFolder) else Judge(specs, registry_ids)
    with bound(host, port) as opened, _writing(to) as stream:
        disk = DiskSpace(stream.path) if isinstance(stream, LocalStream) else None
        clock = SteadyClock(stream.now, lambda line: _LOG.warning("%s: %s", to, line))
        commits = Commits(
            judge,
            stream,
            MOST_WAITING,
            lambda error: _LOG.error("%s: %s", to, plain(str(error))),
            disk.check if disk else lambda: None,
            clock.now,
            RefusedSample(refused).keep if refused else lambda refused: None,
        )
        metrics = PostMetrics(commits.waiting_bytes, disk.free if disk else None)
        limit = RateLimit(megabytes * 1_000_000, 60.0)
        intake = Intake(commits, tokens, origins, limit, metrics, Tables(judge.served))
        server = server_of(application(intake), MOST_CONNECTIONS)
        until(lambda: setattr(server, "should_exit", True))
        say(f"post reports to {url_of(opened).rstrip('/')}{PATH}; they go to {to}; stop with Ctrl-C")
        server.run(sockets=[opened])
        left = commits.close(CLOSE_SECONDS)
    say(f"stopped; the stream has every message that was answered with 202{_late(commits.late)}{_not_written(left)}")


def _late(reports: int) -> str:
    return f"; {reports:,} of their reports came late" if reports else ""


def _not_written(posts: int) -> str:
    if not posts:
        return ""
    said = (
        "1 post was not written, and its sender has"
        if posts == 1
        else f"{posts:,} posts were not written, and their senders have"
    )
    return f"; {said} to come again"


@contextmanager
def _writing(to: Endpoint) -> Iterator[Writer]:
    """Open the stream; a local one stays open. StreamError if it is closed, a simulation's, or another command's."""
    if not isinstance(to, FilesEndpoint) or to.path is None:
        with to.writing(simulated_clock=False) as writer:
            yield writer
        return
    if not to.path.exists() or is_empty(to.path):
        LocalStream.create(to.path)
    stream = LocalStream.open(to.path)
    if stream.closed or stream.simulated_clock or (to.path / UNFINISHED).exists():
        raise StreamError(f"{to.path}: the stream of another command, such as uldp simulate; name another directory")
    remove_abandoned(to.path)
    yield stream
