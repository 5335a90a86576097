"""The records of rejected reports and of missing messages in a results directory, read one at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, finished, read_container, refuse
from uldp.schemas.rejected import Rejected, each_once
from uldp.transforms.io.folders import SOURCE_DIGITS, Kind, kind_of, mismatch
from uldp.transforms.io.message_files import opened
from uldp.transforms.io.stored_files import copies

R = TypeVar("R")


def read_rejected_folder(folder: Path) -> Iterator[Rejected]:
    """Read a folder of rejected reports, or copies; ResultsError if it has none, or a file cannot be read."""
    if kind_of(folder) is not Kind.REJECTED:
        raise ResultsError(mismatch(folder, Kind.REJECTED))
    return rejected_in(folder, refuse)


def rejected_in(folder: Path, damaged: Damaged) -> Iterator[Rejected]:
    """Read the rejected reports of a folder, each once: of copies, which name their first source, one is read."""
    paths = [str(path) for path in finished(folder)]
    headers, copied = copies(paths, opened)
    names = {path: headers[path].name if path in headers else Path(path).stem for path in paths if path not in copied}
    ordered = sorted(names, key=lambda path: (names[path], path))
    for _, files in groupby(ordered, lambda path: names[path][:SOURCE_DIGITS]):
        yield from each_once(records_of(map(Path, files), "rejected", Rejected.from_avro, damaged))


def records_of(
    files: Iterable[Path], schema: str, read: Callable[[Mapping[str, Any]], R], damaged: Damaged
) -> Iterator[R]:
    """Read the records of files, those before the damage of a file included."""
    for path in files:
        try:
            yield from read_container(path, schema, read)
        except ResultsError as error:
            damaged(error)
