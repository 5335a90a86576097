"""Backgrounds that follow from results: where the users behind nested tags are, from the reports of many windows."""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from uldp.mechanisms.catalog import build_protocol, build_variable
from uldp.mechanisms.zones.zone_shares import ZoneShares
from uldp.mechanisms.zones.zoned_decoder import ZonedDecoder
from uldp.pipelines.results.catalog import Catalog
from uldp.pipelines.results.files import Damaged, ResultsError, pass_over
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.panes import PANES
from uldp.pipelines.results.selection import Selection, require
from uldp.pipelines.results.specs import Specs
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mistakes import quote
from uldp.schemas.specs.values import WEIGHT_OF_A_DRAW
from uldp.schemas.specs.variable import Variable
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.durable_files import write_file

#: A stronger background differs from an exact one by less than the rounding of its weights.
_MOST_STRENGTH = 1e9
#: Selects no estimate: each has a name.
_NONE = ""


class Learned(NamedTuple):
    """The background of one tag."""

    attribute: str  # the attribute of the record; empty without a record
    tag: str  # the name of the tag
    labels: Sequence[str]  # the zones
    found: ZoneShares  # their shares, and the background
    values: Sequence[str]  # a name for each value

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{self.attribute}.{self.tag}.csv" if self.attribute else f"{self.tag}.csv"

    def csv(self) -> str:
        """Return the file ``value,weight``: whole weights, whose sum says the strength; of unknown strength, shares."""
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["value", "weight"])
        if math.isnan(self.found.strength):
            # No half of a share is a whole number, so the file gives no strength.
            weights = [repr(share / 2) for share in self.found.background.tolist()]
        else:
            strength = min(self.found.strength, _MOST_STRENGTH)
            total = max(round(WEIGHT_OF_A_DRAW * strength), 1)
            weights = list(map(str, whole_weights(self.found.background, total).tolist()))
        rows.writerows(pair for pair in zip(self.values, weights, strict=True) if pair[1] not in ("0", "0.0"))
        return text.getvalue()


def whole_weights(distribution: Floats, total: int) -> Counts:
    """Return whole numbers with the sum ``total`` that are nearest to ``distribution * total``, by largest remainders.

    >>> whole_weights(np.array([0.5, 0.26, 0.24]), 10).tolist()
    [5, 3, 2]
    """
    exact = distribution * total
    weights: Counts = np.floor(exact).astype(np.int64)
    missing = total - int(weights.sum())
    weights[np.argsort(weights - exact, kind="stable")[:missing]] += 1
    return weights


class Pooled(NamedTuple):
    """The statistics of several windows as one."""

    windows: int  # the number of windows
    cells: Counts  # the sum of their cells
    reports: int  # the sum of their reports


def spec_with_nested_tags(specs: Specs, collection: str | None) -> CollectionSpec:
    """Return a collection's newest version with ``zone_epsilon``; RequestError or ResultsError if not one has it."""
    require("collection", collection, {name for name, _ in specs})
    nested = {key: spec for key, spec in specs.items() if collection in (None, key[0]) and any(_nested(spec.variables))}
    if not nested:
        raise ResultsError(
            f"{quote(collection) if collection else 'no collection'}: no tag has zone_epsilon, so reports say nothing"
            " of the zones behind a tag; add zones and zone_epsilon to a tag in a new version"
        )
    if len(names := {name for name, _ in nested}) > 1:
        raise ResultsError(
            f"several collections have nested tags; add --collection, one of: {', '.join(sorted(names))}"
        )
    return nested[max(nested)]


def _nested(variables: Mapping[str, Variable]) -> Iterator[str]:
    return (tag.name for variable in variables.values() for tag in variable.tags if tag.zone_epsilon is not None)


def pooled(out: Path, spec: CollectionSpec, since: int | None, damaged: Damaged) -> Pooled:
    """Add the newest statistics of a spec's windows that end after ``since``, in ms; of overlapping ones, some.

    ``damaged`` is called for each file that is left out, and for each window whose newest pane a local job has written
    and that is not there. ResultsError if no window counts a report.
    """
    digest, selection = spec.device_digest, Selection(spec.collection, since, estimator=_NONE)
    panes = [pane for pane in newest(ResultsFolder(out, damaged).statistics()) if pane.key[:2] == spec.key]
    replace(Catalog.read(out, (PANES,), pass_over, selection), damaged=damaged).name_lost(PANES)
    windows = selection.windows(pane.key for pane in panes)
    chosen = list(_apart([pane for pane in panes if pane.n and pane.device_digest == digest and pane.key in windows]))
    if not chosen:
        raise ResultsError(
            f"{out}: no window of {spec.collection} version {spec.version} counts a report"
            f"{'' if since is None else ' since then; choose an earlier --since'}"
        )
    cells: Counts = np.sum([pane.cells for pane in chosen], axis=0)
    return Pooled(len(chosen), cells, sum(pane.n for pane in chosen))


def _apart(panes: Sequence[Statistic]) -> Iterator[Statistic]:
    end = -math.inf
    for pane in sorted(panes, key=lambda pane: pane.window_start):
        if pane.window_start >= end:
            yield pane
            end = pane.window_end


def learned_backgrounds(spec: CollectionSpec, of: Pooled) -> Iterator[Learned]:
    """Yield the background of each nested tag. It combines the reports with the background of the spec."""
    for name, cells, n in _parts(spec, of):
        variable = spec.variables[name]
        decoder = build_variable(variable).decoder
        if n and isinstance(decoder, ZonedDecoder):
            for tag, found in decoder.learned(cells, n).items():
                zones = variable.zones[tag]
                assert zones is not None
                yield Learned(name, variable.tags[tag].name, zones.labels, found, variable.labels)


def _parts(spec: CollectionSpec, of: Pooled) -> Iterator[tuple[str, Counts, int]]:
    protocol = build_protocol(spec)
    of_all = protocol.decoder.of_all(of.cells, of.reports)
    if "" in spec.variables:
        yield "", of_all.cells, of_all.n
        return
    for name, (cells, n) in zip(spec.variables, protocol.of_all.mechanism.split_cells(of_all.cells), strict=True):
        yield name, cells, n


def write_background(folder: Path, learned: Learned) -> Path:
    """Write the file of a background, and return its path. The same results give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / learned.file
    write_file(str(path), learned.csv().encode())
    return path
