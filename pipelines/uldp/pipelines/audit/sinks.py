"""The places of rows that a job has published to, beside the newest estimates of its results."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from uldp.pipelines.audit.compare import window_text
from uldp.pipelines.results.files import Damaged
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.lacking import Lacking
from uldp.pipelines.results.text import number_of
from uldp.schemas.errors import EndpointError
from uldp.transforms.io.endpoints import Endpoint, parse_endpoint
from uldp.transforms.io.folders import JOB
from uldp.transforms.io.row_sink import RowSink


class Answers(NamedTuple):
    """Lines about places of rows."""

    faults: list[str]  # those that lack windows, or do not answer
    notes: list[str]  # those that cannot be asked, or that results alone name


def compare_sinks(sinks: Sequence[str], named: Sequence[Endpoint], out: Path, damaged: Damaged) -> Answers:
    """Ask each place that a job records for the newest estimates of results; of a network, only those also named.

    Results may be a stranger's, and a database that they name gets the password of whoever connects.
    """
    answers = Answers([], [])
    of_user = {place.recorded if isinstance(place, RowSink) else str(place): place for place in named}
    for uri in dict.fromkeys((*sinks, *of_user)):
        try:
            sink = of_user.get(uri) or parse_endpoint(uri)
            if isinstance(sink, RowSink) and sink.on_network and uri not in of_user:
                answers.notes.append(f"{uri}: not compared; name it with --estimates-to to let the audit ask it")
                continue
            lacking = Lacking.of(sink, ResultsFolder(out, damaged)) if isinstance(sink, RowSink) else None
        except EndpointError as error:
            answers.faults.append(f"{error}; or take the place out of sinks in {out / JOB}")
            continue
        if lacking is None:
            answers.notes.append(f"{uri}: nobody can ask here which windows it has, so they are not compared")
        elif lacking.windows:
            answers.faults.append(
                f"{sink}: lacks {number_of(len(lacking.windows), 'window')}, the first"
                f" {window_text(lacking.windows[0])}; start the job again with this --estimates-to, or take the place"
                f" out of sinks in {out / JOB}"
            )
    return answers
