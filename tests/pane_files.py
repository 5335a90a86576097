"""Files of panes as a job writes them, for tests of those who read them."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.panes import Panes
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import counts_to_avro
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.results.filing import File
from uldp.transforms.io.results.pane_files import (
    ESTIMATES,
    FEW_STATISTICS,
    STATISTICS,
    EncodedPane,
    PaneFolder,
    pane_files,
)

_FOLDERS: dict[str, PaneFolder[Any]] = {COUNTS: STATISTICS, FEW: FEW_STATISTICS, "estimates": ESTIMATES}


def file_of(panes: Iterable[PaneHeader], kind: str) -> File:
    """The name and the content of the file of some panes."""
    panes = list(panes)
    estimator = panes[0].estimator if isinstance(panes[0], Estimate) else None
    (file,) = pane_files(_FOLDERS[kind], [EncodedPane.encode(_FOLDERS[kind], pane) for pane in panes], estimator)
    return file


def statistic_file(pane: PaneHeader, kind: str = COUNTS) -> File:
    return file_of([pane], kind)


def estimate_file(estimate: Estimate) -> File:
    return file_of([estimate], "estimates")


def forged_file(pane: PaneHeader, forged: dict[str, Any]) -> File:
    """The file of a pane with other values in its record and, of those of the header, in the header of the file."""
    kind = _FOLDERS["estimates" if isinstance(pane, Estimate) else COUNTS]
    value = pane.to_avro() if isinstance(pane, Estimate) else counts_to_avro(pane)
    whole = EncodedPane.encode(kind, pane)
    none: dict[str, Any] = {"tables": []} if isinstance(pane, Estimate) else {"cells": None}
    bare = value | forged | none
    record, bare_record = encode_record(kind.schema, value | forged), encode_record(kind.schema, bare)
    encoded = whole._replace(record=record, bare=bare_record)
    (file,) = pane_files(kind, [encoded], pane.estimator if isinstance(pane, Estimate) else None)
    return file


def save(out: Path, file: File, *, private: bool = False) -> Path:
    write_file(str(out / file.name), file.content, private=private)
    return out / file.name


def save_panes(out: Path, kind: str, panes: Sequence[PaneHeader]) -> Path:
    return save(out, file_of(panes, kind), private=kind == FEW)


def take_out(out: Path, kind: Panes[Any], gone: Callable[[PaneHeader], bool]) -> None:
    """Write each file again that holds some panes, without these."""
    catalog = Catalog.read(out, (kind,), refuse)
    for file in catalog.files:
        panes = list(catalog.panes(kind, [each for each in catalog.entries(kind) if each.file == file.path]))
        left = [pane for pane in panes if not gone(pane)]
        if len(left) < len(panes):
            file.path.unlink()
            if left:
                save_panes(out, kind.folder, left)
