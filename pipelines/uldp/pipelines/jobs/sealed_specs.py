"""The specs of a job of many workers, which each of them reads from a folder while the job runs.

A worker that has a message from behind a time seals what the folder holds: which specs there are, when each opens and
closes, and until when this is final. All workers agree on it, see ``Agreed``. What is sealed later opens and closes no
earlier than that time. So until then the specs that are open are the same for all workers, whichever of them looked at
the folder, and when; and the same again for one that was killed and reads its messages anew.
"""

import base64
import hashlib
import json
import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self
from weakref import WeakValueDictionary

from uldp.collector.admission import Admission
from uldp.collector.hot_specs import HotSpecs
from uldp.collector.shared_specs import SharedSpecs
from uldp.pipelines.jobs.kept_specs import KeptSpec, keep_specs
from uldp.pipelines.jobs.spec_folder import Bad, Found, Looked, SpecFolder
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.specs import load_kept
from uldp.schemas.errors import EndpointError
from uldp.schemas.specs.collection import CollectionKey, CollectionSpec
from uldp.schemas.specs.mistakes import printable
from uldp.transforms.io.agreed import Agreed, FolderStore
from uldp.transforms.io.folders import SEALED, is_remote
from uldp.transforms.io.listing import paths_below

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seal:
    """What all workers of a job agree on.

    Attributes:
        until: The publish time, in milliseconds, before which no later seal changes what is open; 0 if no worker has
            read a message.
        specs: By collection and version, the digest of each spec.
        decided: As of ``SpecFolder``.
        bad: As of ``SpecFolder``.
    """

    until: int
    specs: Mapping[CollectionKey, str]
    decided: str | None
    bad: Mapping[str, Bad] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the seal as JSON."""
        specs = [[*key, digest] for key, digest in self.specs.items()]
        bad = {name: [each.error, each.key] for name, each in self.bad.items()}
        return json.dumps({"until": self.until, "specs": specs, "decided": self.decided, "bad": bad}).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """Read what ``encode`` wrote."""
        data = json.loads(text)
        specs = {(collection, version): digest for collection, version, digest in data["specs"]}
        bad = {name: Bad(error, key and (key[0], key[1])) for name, (error, key) in data["bad"].items()}
        return cls(data["until"], specs, data["decided"], bad)


@dataclass(frozen=True)
class Sealing:
    """How the workers of a job seal specs.

    Attributes:
        folder: The folder of specs, as all workers reach it.
        below: As of ``SpecFolder``.
        out: The results directory, likewise.
        admission: The rules of the job.
        simulated_clock: Whether publish times come from a simulation.
        every_ms: The folder is looked at when messages have come so far behind the last look.
        at_once: It is looked at so many seconds after the last look if a report has come that no spec explains.
        kept: The specs that the results keep already, by their digests.
    """

    folder: str
    below: Path | None
    out: str
    admission: Admission
    simulated_clock: bool
    every_ms: int
    at_once: float
    kept: Mapping[CollectionKey, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The folder below the results in which seals are, and the specs of them."""
        return f"{self.out}/{SEALED}"


class SealedSpecs(HotSpecs):
    """The specs of a job, as its workers have sealed them.

    Args:
        sealing: How they do so.
        name: By which a process finds the object.
        first: The first seal, if there is none.

    Raises:
        EndpointError, OSError: if the seals cannot be read.
        ResultsError: if one of the specs is damaged.
    """

    #: See ``Sealing``.
    EVERY_MS, AT_ONCE = 60_000, 10.0
    #: A seal that is made for a message of a backlog is final for so much longer, if it is not for the present then.
    BACKLOG_MS = 3_600_000

    def __init__(self, sealing: Sealing, name: str, first: bytes | None = None) -> None:
        self._sealing, self._name = sealing, name
        self._folder = SpecFolder(sealing.folder, None, sealing.below)
        self._seals = Agreed(FolderStore(f"{sealing.place}/seals"))
        self._stored = FolderStore(f"{sealing.place}/specs")
        self._of_digest: dict[str, CollectionSpec] = {}
        self._sealing_now = threading.RLock()
        self._looked = time.monotonic()
        value = self._seals.agree(lambda value: True, lambda before: _first(before, first, sealing))
        self._seal = Seal.decode(value)
        super().__init__(self._spec(digest) for digest in self._seal.specs.values())
        self.refused = _refused(self._seal)
        self._keep(self._seal.specs.items() - sealing.kept.items())

    @classmethod
    def begin(
        cls,
        folder: SpecFolder,
        out: str,
        admission: Admission,
        say: Callable[[str], None],
        *,
        simulated_clock: bool,
        from_savepoint: bool = False,
    ) -> Self:
        """Return the specs with which a job begins that has claimed its results, or goes on.

        Args:
            folder: The folder of specs, which keeps those that it takes in the results.
            out: The results directory, as all workers reach it.
            admission: The rules of the job.
            say: Called with a line about each spec and refusal.
            simulated_clock: As of ``Sealing``.
            from_savepoint: Whether the job goes on from what an earlier run has read, so that there must be seals.

        Raises:
            RequestError: if the job takes nothing.
            EndpointError, OSError, ResultsError: as above.
        """
        place = folder.path if is_remote(folder.path) else str(Path(folder.path).absolute())
        sealing = Sealing(place, folder.below, out, admission, simulated_clock, cls.EVERY_MS, cls.AT_ONCE)
        first = None
        if not from_savepoint and not Agreed(FolderStore(f"{sealing.place}/seals")).begun:
            for line in folder.begin(admission, anew=True).lines:
                say(line)
            stored = FolderStore(f"{sealing.place}/specs")
            # Nothing is decided for workers yet: they may see the folder under another name.
            first = Seal(0, {key: _store(stored, spec) for key, spec in folder.specs.items()}, None).encode()
        name = uuid.uuid4().hex
        begun = _OF_PROCESS[name] = cls(sealing, name, first)
        begun._sealing = replace(sealing, kept=begun._seal.specs)
        return begun

    def settle(self, published: int) -> None:
        """See ``SharedSpecs``.

        Raises:
            EndpointError, OSError, ResultsError: if it cannot be known.
        """
        with self._sealing_now:
            if published >= self._seal.until:
                self._seal_behind(published)
            elif self.wanted:
                self._look_again(self._sealing.at_once)

    def refresh(self) -> None:
        """See ``SharedSpecs``."""
        with self._sealing_now:
            self._look_again(self._sealing.every_ms / 1000)

    def _look_again(self, seconds: float) -> None:
        """Look for changes if the last look was so many seconds ago; without an answer, what is sealed is enough."""
        if time.monotonic() - self._looked >= seconds:
            try:
                self._seal_behind(0)
            except (EndpointError, OSError) as error:
                _log.warning("%s; the specs before stay in force", error)

    def learn(self, known: Callable[[], bool]) -> None:
        """See ``HotSpecs``.

        Raises:
            EndpointError, OSError, ResultsError: if it cannot be known.
        """
        if not known():
            with self._sealing_now:
                if not known():
                    self._seal_behind(0)

    def _seal_behind(self, published: int) -> None:
        """Take the newest seal, or seal anew if it is not final until a publish time or the folder has changed."""
        self._looked = time.monotonic()
        found = self._read()
        looked = Looked()

        def enough(value: bytes) -> bool:
            seal = Seal.decode(value)
            return seal.until > published and (found is None or seal.decided == found.digest)

        def following(before: bytes | None) -> bytes:
            nonlocal found, looked
            found = self._read()  # again: the seal before may come from a newer look than the first one
            value, now = self._following(Seal.decode(_first(before, None, self._sealing)), found, published)
            looked = now if now.lines else looked
            return value

        seal = self._take(Seal.decode(self._seals.agree(enough, following)))
        # Another worker may have sealed what this one has decided about, and then has nothing to say.
        if found is not None and seal.decided == found.digest:
            self.refuse(looked.refused)
            for line in looked.lines:
                _log.warning("%s", printable(line))

    def _read(self) -> Found | None:
        """Read the folder; None if it does not answer."""
        try:
            return self._folder.read()
        except EndpointError as error:
            _log.warning("%s; the specs before stay in force", error)
            return None

    def _following(self, seal: Seal, found: Found | None, published: int) -> tuple[bytes, Looked]:
        """Return the seal after one, and what has changed."""
        looked, specs = Looked(), dict(seal.specs)
        self._folder.go_on({key: self._spec(digest) for key, digest in specs.items()}, seal.bad, seal.decided)
        if found is not None:
            looked = self._folder.take(found, self._sealing.admission, seal.until - 1 if seal.until else None)
        specs |= {spec.key: _store(self._stored, spec) for spec in looked.taken}
        # No further in a backlog, or a worker whose clock is wrong would put off for years what comes.
        behind = 0 if self._sealing.simulated_clock else time.time_ns() // 1_000_000 - published
        until = max(seal.until, published + min(max(behind, 0), self.BACKLOG_MS) + self._sealing.every_ms)
        return Seal(until, specs, self._folder.decided, self._folder.bad).encode(), looked

    def _take(self, seal: Seal) -> Seal:
        """Go on by a seal, or by a newer one that other workers have made meanwhile; return it."""
        while True:
            changed = seal.specs.items() - self._seal.specs.items()
            self._keep(changed)
            self.change([self._spec(digest) for _, digest in changed], _refused(seal))
            self._seal = seal
            if not changed:
                return seal
            # Another worker may have kept newer specs meanwhile, over which this one has written.
            newest = self._seals.agree(lambda value: True, lambda before: _first(before, None, self._sealing))
            seal = Seal.decode(newest)

    def _keep(self, changed: Set[tuple[CollectionKey, str]]) -> None:
        """Keep specs in the results, as each worker does before it counts by them."""
        keep_specs(self._sealing.out, [self._spec(digest) for _, digest in changed])

    def _spec(self, digest: str) -> CollectionSpec:
        if digest not in self._of_digest:
            self._of_digest[digest] = _load(self._stored, digest)
        return self._of_digest[digest]

    def __reduce__(self) -> tuple[Callable[[Sealing, str], SharedSpecs], tuple[Sealing, str]]:
        return _of_process, (self._sealing, self._name)


def _first(before: bytes | None, first: bytes | None, sealing: Sealing) -> bytes:
    """Return the seal before, or the first one."""
    if before is not None:
        return before
    if first is None:
        raise ResultsError(f"{sealing.place}: the seals of the job's specs are gone; restore them")
    return first


def _refused(seal: Seal) -> frozenset[CollectionKey]:
    return frozenset(each.key for each in seal.bad.values() if each.key is not None)


def _store(store: FolderStore, spec: CollectionSpec) -> str:
    """Store a spec with the files that it names, and return the digest by which it is found."""
    files = {"/".join(parts): base64.b64encode(data).decode() for parts, data in KeptSpec.of(spec).files.items()}
    content = json.dumps(files, sort_keys=True).encode()
    digest = hashlib.sha256(content).hexdigest()
    store.write(f"{digest}.json", content)
    return digest


def _load(store: FolderStore, digest: str) -> CollectionSpec:
    """Load a spec that ``_store`` stored.

    Raises:
        ResultsError: if it is not there as it was.
    """
    content = store.read(f"{digest}.json")
    if content is None or hashlib.sha256(content).hexdigest() != digest:
        raise ResultsError(f"{SEALED}/specs/{digest}.json beside the results is gone or damaged; restore it")
    with TemporaryDirectory() as made:
        for name, data in json.loads(content).items():
            path = Path(made, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(data))
        (kept,) = paths_below(Path(made), "specs/*/spec.yaml")
        return load_kept(kept)


_OF_PROCESS: WeakValueDictionary[str, SealedSpecs] = WeakValueDictionary()
_MAKING = threading.Lock()


def _of_process(sealing: Sealing, name: str) -> SealedSpecs:
    with _MAKING:
        found = _OF_PROCESS.get(name)
        if found is None:
            found = _OF_PROCESS[name] = SealedSpecs(sealing, name)
        return found
