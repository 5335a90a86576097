"""When a job, or a server that takes reports, looks at its folder of specs, and what its steps then hold."""

import threading
import time
from collections.abc import Callable, Iterable

from uldp.collector.admission import Admission
from uldp.collector.shared_specs import HotSpecs
from uldp.pipelines.jobs.spec_folder import SpecFolder
from uldp.schemas.errors import EndpointError
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.per_process import Itself


class SpecWatch:
    """Looks at a folder of specs every minute, and soon after a report of an unknown collection or version."""

    #: Seconds between two looks, and seconds between them if a report has come that no spec explains.
    EVERY, AT_ONCE = 60.0, 10.0

    def __init__(
        self,
        folder: SpecFolder,
        specs: HotSpecs,
        admission: Admission,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._specs, self._admission, self._say, self._clock = folder, specs, admission, say, clock
        self._looked = -self.EVERY

    def look(self, latest: int | None) -> bool:
        """Look if it is time to; return whether the specs have changed. For ``latest``, see ``Admission.of_new``."""
        now = self._clock()
        if now - self._looked < (self.AT_ONCE if self._specs.wanted else self.EVERY):
            return False
        self._looked = now
        try:
            looked = self._folder.look(self._admission, latest)
        except EndpointError as error:
            self._say(f"{error}; the specs before stay in force")
            return False
        self._specs.change(looked.taken, self._folder.refused)
        for line in looked.lines:
            self._say(line)
        return bool(looked.taken)


class LocalSpecs(Itself, HotSpecs):
    """The specs of a job whose steps run in one process, which another thread of it changes, or a step that reads."""

    def __init__(self, specs: Iterable[CollectionSpec]) -> None:
        super().__init__(specs)
        self._watch: SpecWatch | None = None
        self._latest: int | None = None
        self._settling = threading.Lock()

    def look_while_reading(self, watch: SpecWatch, latest: int | None) -> None:
        """Have the steps that read messages look at the folder; for ``latest``, see ``Admission.of_new``."""
        self._watch, self._latest = watch, latest

    def settle(self, published: int) -> None:
        """Open what is new behind the messages that any thread has asked for; OSError or EndpointError if not kept."""
        if self._watch is None:
            return
        with self._settling:
            self._watch.look(self._latest)
            self._latest = published if self._latest is None else max(self._latest, published)


def begin_watch(
    folder: SpecFolder,
    admission: Admission,
    say: Callable[[str], None],
    *,
    anew: bool,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[LocalSpecs, SpecWatch]:
    """Return what the steps of a job hold, and what changes it; ``anew`` and errors as in ``SpecFolder.begin``."""
    looked = folder.begin(admission, anew=anew)
    for line in looked.lines:
        say(line)
    specs = LocalSpecs(folder.specs.values())
    return specs, SpecWatch(folder, specs, admission, say, clock)
