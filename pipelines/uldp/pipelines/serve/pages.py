"""The pages: that of each folder as ``uldp report`` writes it, and a list of the folders."""

import threading
import time
from collections.abc import Iterable
from html import escape
from urllib.parse import quote as quoted

from uldp.mechanisms.questions.periods import EVERY
from uldp.pipelines.live.served import Served
from uldp.pipelines.report.page import report_page
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.serve.api import MOST_BYTES, MOST_WINDOWS, LargeAnswerError
from uldp.pipelines.serve.query import SELECTION, Query
from uldp.schemas.specs.mistakes import printable

#: The names that the query of a page may have; they are those of options of ``uldp report``.
OF_A_PAGE = (*SELECTION, "every", "value", "simultaneous")

#: What the page says if it does not show all windows that were asked for.
NARROWED = (
    "These are {windows:,} of {of:,} windows, the newest {last:,} of each collection. For others, add ?since= and"
    " ?until= to the address of this page, as ?since=2026-01-01&until=2026-02-01, or ?collection=."
)

#: matplotlib's settings are of the whole process while it draws.
_drawing = threading.Lock()


def page(served: Served, query: Query, state: str) -> bytes:
    """Return the page of a folder that follows it; LargeAnswerError if it is too large; errors of ``report_page``."""
    damaged: list[ResultsError] = []
    folder = served.folder(damaged)
    selection = folder.select(**query.selection())
    newest = served.headers.newest()
    shown = selection.at_most(newest, MOST_WINDOWS)
    windows, of = (len(each.windows(newest)) for each in (shown, selection))
    if windows > MOST_WINDOWS:
        raise LargeAnswerError(f"the newest windows of all collections are {windows:,}; add ?collection=")
    with _drawing:
        text = report_page(
            folder,
            shown,
            made=int(time.time() * 1000),
            values=query.all("value"),
            every=query.choice("every", EVERY),
            simultaneous=query.choice("simultaneous", ("true", "false")) == "true",
            state=state,
            narrowed="" if windows == of else NARROWED.format(windows=windows, of=of, last=shown.last),
        ).encode()
    if len(text) > MOST_BYTES:
        raise LargeAnswerError(f"the page is longer than {MOST_BYTES >> 20} MiB; add ?last= or ?collection=")
    return text


def waiting(served: Served) -> bytes:
    """Return the page of a folder to which no job has written yet: a browser asks again every two seconds."""
    return _page(
        "No results yet",
        f"<h1>{escape(printable(served.name))}</h1>\n<p>No results yet. This page follows them.</p>",
        '<meta http-equiv="refresh" content="2">\n',
    )


def index(folders: Iterable[Served]) -> bytes:
    """Return the list of the folders."""
    items = "\n".join(
        f'<li><a href="results/{escape(quoted(each.name, safe=""))}/">{escape(printable(each.name))}</a></li>'
        for each in folders
    )
    return _page("Results", f"<h1>Results</h1>\n<ul>\n{items}\n</ul>")


def _page(title: str, body: str, head: str = "") -> bytes:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
{head}<title>{title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:2em auto;padding:0 1em}}</style>
</head>
<body>
{body}
</body>
</html>
""".encode()
