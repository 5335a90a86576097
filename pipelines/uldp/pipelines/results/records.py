"""The records of rejected reports, of missing messages, and of files that a backfill left out, beside results."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from uldp.pipelines.results.files import Damaged, ResultsError, finished, read_container, refuse
from uldp.schemas.regular_files import read_json
from uldp.schemas.rejected import Rejected, each_once
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import remove_file, write_file
from uldp.transforms.io.folders import LEFT_OUT, SOURCE_DIGITS, Kind, kind_of, mismatch
from uldp.transforms.io.listing import LeftOut, Reason, left_out_text
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


def keep_left_out(out: str, left_out: Mapping[Reason, LeftOut]) -> None:
    """Write what was left out beside the results in ``out``, here or behind a URL; in place of an older record."""
    path = f"{out}/{LEFT_OUT}"
    if left_out:
        record = {reason.name.lower(): asdict(each) for reason, each in left_out.items()}
        write_file(path, json.dumps(record, indent=2).encode() + b"\n")
    else:
        remove_file(path)


def left_out_line(out: Path, damaged: Damaged = refuse) -> str | None:
    """Return the line about what the job left out, if anything; ResultsError if the record cannot be read."""
    path = out / LEFT_OUT
    try:
        left_out = {
            Reason[name.upper()]: LeftOut(int(each["files"]), str(each["first"]))
            for name, each in read_json(path).items()
        }
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        damaged(ResultsError(f"{plain(str(path))}: damaged; remove it and run its job again"))
        return None
    return f"the job {left_out_text(left_out)}" if left_out else None
