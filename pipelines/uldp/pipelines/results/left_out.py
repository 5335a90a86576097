"""What a backfill did not read of its archive: a record beside its results, which the readers of the results repeat."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from uldp.pipelines.results.files import Damaged, ResultsError, refuse
from uldp.schemas.regular_files import read_json
from uldp.schemas.specs.mistakes import plain
from uldp.transforms.io.durable_files import remove_file, write_file
from uldp.transforms.io.folders import LEFT_OUT
from uldp.transforms.io.listing import LeftOut, Reason, left_out_text


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
