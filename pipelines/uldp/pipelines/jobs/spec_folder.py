"""A folder of specs that a job reads: what is new or changed in it, and what the job takes of that.

A job on this machine looks at it while it runs, and one on a cluster when it is submitted.

The results directory keeps each spec as the job took it, with the times at which it opens and closes. A job that starts
again goes on with these. So a file that is bad, or gone, changes nothing: what it said last stays in force. A server
that takes reports has no results, and keeps the specs until it ends.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from uldp.collector.admission import Admission
from uldp.collector.collections import serve
from uldp.pipelines.jobs.identity import name_of
from uldp.pipelines.jobs.kept_specs import KeptSpec, keep_specs, kept_specs
from uldp.schemas.errors import EndpointError, RequestError, UldpError
from uldp.schemas.regular_files import read_regular
from uldp.schemas.specs.collection import COLLECTION, CollectionKey, CollectionSpec
from uldp.schemas.specs.durations import format_moment
from uldp.schemas.specs.mistakes import plain
from uldp.schemas.specs.specfile import MAX_SPEC_BYTES
from uldp.transforms.io.folders import below, is_remote
from uldp.transforms.io.listing import files_below, others_text, spec_files
from uldp.transforms.io.remote import copy_below, matching

#: Of each file: its path, its size, and when it was last written.
_Listing = tuple[tuple[str, int, float], ...]
_NAMES = (
    re.compile(rf"^collection:\s*[\"']?({COLLECTION})[\"']?\s*(?:#.*)?$", re.M),
    re.compile(r"^version:\s*(\d{1,10})\b", re.M),
)


@dataclass
class Looked:
    """What a look at the folder has found."""

    #: The specs that are new or have changed, as the job takes them.
    taken: list[CollectionSpec] = field(default_factory=list)
    #: A line about each, and about each file that was refused and was not before in this form.
    lines: list[str] = field(default_factory=list)


class SpecFile(NamedTuple):
    """What a file holds: a spec, or what is wrong; and the collection and version that it names, if that is known."""

    name: str
    spec: CollectionSpec | None
    error: str | None
    key: CollectionKey | None


class Found(NamedTuple):
    """What a folder holds."""

    digest: str  # a digest of the listing of all its files
    files: tuple[SpecFile, ...]  # those that are called as specs
    others: Mapping[str, str]  # why each other entry is left out, by name


class SpecFolder:
    """Reads the specs of a folder for one job: the files in it that end with ``.yaml`` or ``.yml``, in any case.

    Two files of one collection and version are both refused: nothing but their names would say which one counts. The
    files that a spec names are in the folder too, or below ``below``. Results in ``out``, if any, keep the specs.
    """

    def __init__(self, path: str, out: str | None, below: Path | None = None) -> None:
        self.path, self._out, self._below = path.rstrip("/"), out, below
        self.specs: dict[CollectionKey, CollectionSpec] = {}  # as the job has taken them
        self._decided: str | None = None  # the digest of what was decided about last
        self._found: Found | None = None
        self._kept_then: tuple[_Listing, dict[CollectionKey, CollectionSpec]] | None = None
        self._of_file: dict[str, CollectionKey] = {}
        self._bad: dict[str, str] = {}
        self._others: frozenset[str] = frozenset()

    @property
    def refused(self) -> frozenset[CollectionKey]:
        """The collections that a file names whose newest content is refused."""
        return frozenset(self._of_file[name] for name in self._bad if name in self._of_file)

    @property
    def refused_files(self) -> int:
        """The number of files whose newest content is refused, those of no known collection too."""
        return len(self._bad)

    def found(self) -> list[CollectionSpec]:
        """Return all specs of results and of the folder; RequestError without one, EndpointError if unreadable."""
        files = self._read().files
        found = [*self._kept().values(), *(file.spec for file in files if file.spec is not None)]
        if not found:
            raise RequestError(next((file.error for file in files if file.error is not None), self._empty()))
        return found

    def begin(self, admission: Admission, *, anew: bool) -> Looked:
        """Read what an earlier run took; ``anew``, the folder as it is; RequestError if nothing, others as ``look``."""
        self.specs = self._kept()
        looked = self.look(admission, None) if anew else Looked()
        if not self.specs:
            nothing = self._empty() if anew else f"{self._out}: holds no spec of an earlier run; restore it"
            raise RequestError("\n".join(looked.lines) or nothing)
        return looked

    def submitted(self, admission: Admission, latest: int | None) -> Looked:
        """Take the folder after what an earlier run took; RequestError for a bad file: who submits can mend it."""
        self.specs = self._kept()
        looked = self._take_all(self._read(), admission, latest)
        if self._bad:
            raise RequestError("\n".join(f"{self.path}: {name}: {error}" for name, error in self._bad.items()))
        return looked

    def look(self, admission: Admission, latest: int | None) -> Looked:
        """Look for changed specs, and keep them before a report is counted by them; EndpointError or OSError if not."""
        found, before = self._read(), dict(self.specs)
        if found.digest == self._decided:
            return Looked()
        looked = self._take_all(found, admission, latest)
        if self._out is not None:
            try:
                keep_specs(self._out, looked.taken)
            except BaseException:
                self.specs = before  # the next look finds them new again
                raise
        self._decided = found.digest
        return looked

    def _read(self) -> Found:
        """Read the folder, unless it is as it was; EndpointError if it cannot be read."""
        listing = _list(self.path)
        digest = hashlib.sha256(repr(listing).encode()).hexdigest()
        if self._found is None or self._found.digest != digest:
            with self._here() as here:
                self._found = self._read_here(digest, here)
        return self._found

    def _take_all(self, found: Found, admission: Admission, latest: int | None) -> Looked:
        """Decide about the specs of files."""
        looked, names = Looked(), defaultdict[CollectionKey, list[str]](list)
        for file in found.files:
            if file.key is not None:
                self._of_file[file.name] = file.key
                names[file.key].append(file.name)
        for file in found.files:
            error = file.error
            if file.spec is not None:
                others = [plain(name) for name in names[file.spec.key] if name != file.name]
                if others:
                    error = f"is of {name_of(file.spec)}, as {', '.join(others)}; remove one, or raise its version"
                else:
                    error = self._take(file.spec, file.name, admission, latest, looked)
            self._note(file.name, error, looked)
        new = {name: why for name, why in found.others.items() if name not in self._others}
        looked.lines.extend(f"{self.path}: {line}" for line in others_text(new))
        self._others = frozenset(found.others)
        for name in self._bad.keys() - {file.name for file in found.files}:
            del self._bad[name]
        return looked

    def _take(
        self, spec: CollectionSpec, name: str, admission: Admission, latest: int | None, looked: Looked
    ) -> str | None:
        """Take a spec if it is new or has changed; return why it is refused."""
        before = self.specs.get(spec.key)
        try:
            if before is None:
                now = admission.of_new(spec, latest)
            else:
                now = admission.of_known(before, spec, -1 if latest is None else latest)
        except RequestError as error:
            return str(error)
        if before is not None and KeptSpec.of(before) == KeptSpec.of(now):
            return None
        self.specs[now.key] = now
        looked.taken.append(now)
        looked.lines.append(f"{self.path}: {name}: {news_of(before, now)}")
        return None

    def _note(self, name: str, error: str | None, looked: Looked) -> None:
        """Note whether a file is refused."""
        if error is None:
            self._bad.pop(name, None)
            return
        if self._bad.get(name) != error:
            stays = name in self._of_file and self._of_file[name] in self.specs
            fate = "the spec before stays in force" if stays else "and left out"
            looked.lines.append(f"{self.path}: {name}: refused, {fate}: {error}")
        self._bad[name] = error

    def _kept(self) -> dict[CollectionKey, CollectionSpec]:
        """Read what the results directory keeps; one that is as it was is not read again."""
        if self._out is None:
            return {}
        listing = _list(below(self._out, "specs"))
        if self._kept_then is None or self._kept_then[0] != listing:
            self._kept_then = listing, kept_specs(self._out)
        return dict(self._kept_then[1])

    def _empty(self) -> str:
        return f"{self.path}: holds no file that ends with .yaml or .yml; put specs there"

    def _read_here(self, digest: str, here: Path) -> Found:
        """Read the folder, or its copy on this machine; EndpointError if it cannot be listed."""
        try:
            paths, others = spec_files(here)
        except OSError as error:
            raise EndpointError(f"{self.path}: {error.strerror}; check the folder") from error
        return Found(digest, tuple(self._load(path, here) for path in paths), others)

    def _load(self, path: Path, here: Path) -> SpecFile:
        """Read a file."""
        if path.exists() and not (path.is_file() or path.is_dir()):  # to open a pipe would wait for ever
            return SpecFile(path.name, None, "is a pipe, a socket or a device; write the spec into a file", None)
        try:
            spec = CollectionSpec.load(path, below=self._below)
            serve([spec])  # refuses what no job could count, which would end each one that took it
        except UldpError as error:
            text = "; ".join(str(error).replace(f"{path}: ", "").replace(str(here), self.path).splitlines())
            return SpecFile(path.name, None, text, _key_of_bad(path))
        return SpecFile(path.name, spec, None, spec.key)

    @contextmanager
    def _here(self) -> Iterator[Path]:
        """Yield the folder, or a copy of it here; EndpointError if there is none, or it cannot be fetched."""
        if not is_remote(self.path):
            if not Path(self.path).is_dir():
                raise EndpointError(f"{self.path}: no such directory; check the path")
            yield Path(self.path)
            return
        with TemporaryDirectory() as made:
            copy_below(self.path, "**", Path(made))
            yield Path(made)


def news_of(before: CollectionSpec | None, now: CollectionSpec) -> str:
    """Return a line about a spec that is new, or that has changed."""
    times = [
        f"{what} reports published from {format_moment(moment)} on"
        for what, moment in (("takes", now.opens), ("rejects", now.closes))
        if moment is not None
    ]
    news = "new" if before is None else "changed"
    return ", ".join([f"{news} spec of {name_of(now)}", *times])


def _list(folder: str) -> _Listing:
    if is_remote(folder):
        files = matching(f"{folder}/**")
        return tuple((file.path, file.size_in_bytes, file.last_updated_in_seconds or 0.0) for file in files)
    return tuple((str(path), status.st_size, status.st_mtime) for path, status in sorted(files_below(Path(folder))))


def _key_of_bad(path: Path) -> CollectionKey | None:
    """Find of which collection a bad file is, by its first lines that name one."""
    try:
        text = read_regular(path, MAX_SPEC_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return None
    collection, version = (pattern.search(text) for pattern in _NAMES)
    return None if collection is None or version is None else (collection[1], int(version[1]))
