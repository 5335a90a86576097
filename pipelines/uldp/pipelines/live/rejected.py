"""Rejected reports by reason, of a folder that grows: only files that are new are read."""

import os
import threading
from collections import Counter
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from uldp.pipelines.results.files import ResultsError, finished
from uldp.pipelines.results.records import records_of
from uldp.schemas.rejected import Rejected, count_reasons, each_once
from uldp.transforms.io.folders import SOURCE_DIGITS
from uldp.transforms.io.message_files import opened
from uldp.transforms.io.stored_files import read_stored


class RejectedReasons:
    """Counts the rejected reports of a folder by reason; may be used by several threads.

    What came from one source, such as a segment, is counted anew when one of its files changes. The numbers of a source
    whose files ``uldp prune`` has removed stay, so that none falls.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._files: dict[str, tuple[tuple[str, int], ...]] = {}
        self._counts: dict[str, Counter[str]] = {}

    def count(self) -> Counter[str]:
        """Return the number of reports by reason; of a damaged file, those before the damage."""
        with self._lock:
            for source, files in groupby(finished(self._folder), lambda path: path.name[:SOURCE_DIGITS]):
                self._count(source, list(files))
            total: Counter[str] = Counter()
            for counts in self._counts.values():
                total += counts
            return total

    def _count(self, source: str, files: list[Path]) -> None:
        with suppress(FileNotFoundError):  # removed since they were listed
            now = tuple((path.name, os.stat(path).st_mtime_ns) for path in files)
            if self._files.get(source) != now:
                own = [path for path in files if not self._is_copy(path)]
                records = records_of(own, "rejected", Rejected.from_avro, _pass_over)
                self._counts[source] = count_reasons(each_once(records))
                self._files[source] = now

    def _is_copy(self, path: Path) -> bool:
        """Return whether a file has another name than its job gave it, and the file of that name is there too."""
        header = read_stored(str(path), opened)
        return header is not None and header.name != path.stem and (self._folder / f"{header.name}.avro").exists()


def _pass_over(damage: ResultsError) -> None:
    """Leave a damaged file to the commands that name it."""
