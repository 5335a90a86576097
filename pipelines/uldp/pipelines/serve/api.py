"""Answers of the JSON API: what ``uldp show --json``, ``uldp ask --json`` and rows say, as the parts of one object."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, get_args

from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.questions.answer import rows_of
from uldp.mechanisms.questions.compare import Correction
from uldp.mechanisms.questions.periods import EVERY
from uldp.pipelines.asking.groups import Wanted
from uldp.pipelines.asking.questions import Asked, put
from uldp.pipelines.asking.text import answer_json
from uldp.pipelines.live.served import Served
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.json_lines import to_json
from uldp.pipelines.results.kept import Kept
from uldp.pipelines.results.pooled import pool_versions, pooled_json
from uldp.pipelines.results.selection import Selection
from uldp.pipelines.serve.query import SELECTION, Query
from uldp.schemas.errors import RequestError
from uldp.schemas.pane import PaneHeader
from uldp.schemas.records import iso
from uldp.schemas.specs.collection import CollectionSpec
from uldp.transforms.io.json_rows import json_rows

#: Bounds on an answer: of the cells of its windows, which are read into memory together; of the windows of rows and of
#: periods, which are read one by one; of rows and numbers; and of bytes.
MOST_CELLS, MOST_WINDOWS, MOST_ROWS, MOST_BYTES = 200_000, 20_000, 100_000, 32 << 20


class LargeAnswerError(RequestError):
    """An answer would be larger than the server gives; the message says how to ask for less."""


Answerer = Callable[[Served, Query], Mapping[str, Any]]


def collections(served: Served, query: Query) -> Mapping[str, Any]:
    """Return the versions of the collections of a folder, each with its windows and its spec in short."""
    damaged: list[ResultsError] = []
    folder, newest = served.folder(damaged), served.headers.newest()
    selection = folder.select(collection=query.one("collection"))
    chosen = selection.windows(newest)
    damaged += served.headers.damaged(selection)
    of_version: dict[tuple[str, int], list[PaneHeader]] = {key: [] for key in folder.specs}
    for key in chosen:
        of_version.setdefault(key[:2], []).append(newest[key])
    found = [
        _collection(folder.specs[key], panes)
        for key, panes in sorted(of_version.items())
        if key in folder.specs and query.one("collection") in (None, key[0])
    ]
    return {"collections": found, "damaged": served.texts(damaged)}


def _collection(spec: CollectionSpec, panes: list[PaneHeader]) -> dict[str, Any]:
    last = max(panes, key=lambda pane: (pane.window_end, pane.window_start), default=None)
    return {
        "collection": spec.collection,
        "version": spec.version,
        "mechanism": spec.mechanism.name,
        "epsilon": spec.mechanism.epsilon,
        "estimators": list(spec.estimators),
        "attributes": list(spec.variables),
        "windows": len(panes),
        "last_window_start": None if last is None else iso(last.window_start),
        "last_window_end": None if last is None else iso(last.window_end),
        "n": 0 if last is None else last.n,
        "flags": [] if last is None else list(last.flags),
    }


def estimates(served: Served, query: Query) -> Mapping[str, Any]:
    """Return the newest estimates of the selected windows, and what else ``uldp show`` says of them."""
    damaged: list[ResultsError] = []
    folder = served.folder(damaged)
    selection = _selection(served, folder, query, in_memory=True)
    found = folder.current(selection)
    with_specs = list(folder.with_specs(found.estimates))
    lines = [to_json(estimate, found.statistic_of(estimate), spec) for estimate, spec in with_specs]
    not_pooled: list[str] = []
    if query.choice("pooled", ("true", "false")) == "true":
        lines += [pooled_json(each) for each in pool_versions(with_specs, found, not_pooled.append)]
    return {
        "estimates": lines,
        "unpublished": [_header(pane) for pane in found.unpublished],
        "held_back": [_header(pane) for pane in found.held],
        "not_pooled": not_pooled,
        "damaged": served.texts(damaged),
    }


def _header(pane: PaneHeader) -> dict[str, Any]:
    return {
        "collection": pane.collection,
        "version": pane.version,
        "window_start": iso(pane.window_start),
        "window_end": iso(pane.window_end),
        "n": pane.n,
        "accounting": pane.accounting.to_avro(),
        "flags": list(pane.flags),
    }


def windows(served: Served, query: Query) -> Mapping[str, Any]:
    """Return where the reports of the selected windows went, also of those without a published estimate."""
    damaged: list[ResultsError] = []
    folder, newest = served.folder(damaged), served.headers.newest()
    selection = folder.select(**query.selection())
    chosen = selection.windows(newest)
    damaged += served.headers.damaged(selection)
    found = ({"pane": str(pane.pane.kind), **_flat(pane)} for key, pane in newest.items() if key in chosen)
    return {"windows": _bounded(found), "damaged": served.texts(damaged)}


def _flat(pane: PaneHeader) -> dict[str, Any]:
    header = _header(pane)
    accounting: dict[str, int] = header.pop("accounting")
    return header | accounting


#: The columns by which a query may choose rows.
OF_ROWS = ("quantity", "attribute", "slice", "label")


def rows(served: Served, query: Query) -> Mapping[str, Any]:
    """Return the rows of the selected windows as ``uldp export`` writes them: one for each value of each estimate."""
    damaged: list[ResultsError] = []
    folder = served.folder(damaged)
    found = folder.published(_selection(served, folder, query, in_memory=False))
    wanted = {name: set(query.all(name)) for name in OF_ROWS if query.all(name)}
    made = (row for each in folder.with_specs(found) for row in json_rows(*each))
    chosen = (row for row in made if all(row[name] in values for name, values in wanted.items()))
    return {"rows": _bounded(chosen), "damaged": served.texts(damaged)}


def ask(served: Served, query: Query) -> Mapping[str, Any]:
    """Answer a question as ``uldp ask`` does; ``compare`` and ``explain`` take two values."""
    damaged: list[ResultsError] = []
    folder, every = served.folder(damaged), query.choice("every", EVERY)
    kept = Kept.of(folder, _selection(served, folder, query, in_memory=every is None))
    pooled = query.choice("pooled", ("true", "false")) == "true"
    asked = Asked.of(kept, every, query.one("zone") or "UTC", query.one("estimator"), pooled=pooled)
    wanted = Wanted.read(query.all("sum"), None, query.all("where"))
    over, compare, explain = query.choice("over", ("time",)), query.pair("compare"), query.pair("explain")
    if sum(map(bool, (over, compare, explain))) > 1 or ((over or explain) and wanted):
        raise RequestError("that is more than one question; ask for one of over, compare, explain, sum and where")
    if explain is not None:
        answer: dict[str, Any] = {"steps": [{"step": name, "text": text} for name, text in asked.explain(*explain)]}
    else:
        correct: Correction = query.choice("correct", get_args(Correction)) or "holm"
        same = query.choice("same_devices", ("true", "false")) == "true"
        if same and compare is None:
            raise RequestError("same_devices is about two times; add compare twice")
        answers = put(asked, wanted, over=over is not None, compare=compare, correct=correct, same_devices=same)
        answer = {"answers": [answer_json(each) for each in _bounded(rows_of(answers))]}
    left_out = [
        {"collection": key[0], "version": key[1], "reason": reason, "windows": len(sizes), "reports": sum(sizes)}
        for (key, reason), sizes in kept.left_out.items()
    ]
    return answer | {"left_out": left_out, "damaged": served.texts(damaged)}


#: The answers by the last part of their path, with the names that their queries may have.
ANSWERS: Mapping[str, tuple[Answerer, tuple[str, ...]]] = {
    "collections": (collections, ("collection",)),
    "estimates": (estimates, (*SELECTION, "pooled")),
    "windows": (windows, ("collection", "last", "since", "until")),
    "rows": (rows, (*SELECTION, *OF_ROWS)),
    "ask": (
        ask,
        (
            *(*SELECTION, "every", "zone", "pooled", "sum", "where"),
            *("over", "compare", "correct", "same_devices", "explain"),
        ),
    ),
}


def encoded(answer: Mapping[str, Any]) -> bytes:
    """Write an answer as JSON; LargeAnswerError if it is too long."""
    parts, size = [], 0
    for part in json.JSONEncoder().iterencode(answer):
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise LargeAnswerError(f"the answer is longer than {MOST_BYTES >> 20} MiB; {_LESS}")
    return "".join(parts).encode()


_LESS = "ask for less: by collection, last, since, until or every"


def _bounded(things: Iterable[Any]) -> list[Any]:
    found = list(islice(things, MOST_ROWS + 1))
    if len(found) > MOST_ROWS:
        raise LargeAnswerError(f"the answer has more than {MOST_ROWS:,} numbers; {_LESS}")
    return found


def _selection(served: Served, folder: ResultsFolder, query: Query, *, in_memory: bool) -> Selection:
    """Return the selection of a query; LargeAnswerError if it is of more windows than an answer may have."""
    selection = folder.select(**query.selection())
    keys = selection.windows(served.headers.newest())
    if len(keys) > MOST_WINDOWS:
        raise LargeAnswerError(f"that is of {len(keys):,} windows, and an answer of {MOST_WINDOWS:,} at most; {_LESS}")
    if in_memory:
        sizes = {key: build_protocol(spec).mechanism.statistic_size for key, spec in folder.specs.items()}
        cells = sum(sizes.get(key[:2], 0) for key in keys)
        if cells > MOST_CELLS:
            raise LargeAnswerError(
                f"that is of {len(keys):,} windows with {cells:,} counts, and an answer of {MOST_CELLS:,}; {_LESS}"
            )
    return selection
