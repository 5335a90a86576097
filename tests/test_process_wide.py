"""A library leaves alone what belongs to the whole process. The command line may change it."""

import ast
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_layering import offenders, parsed

#: Calls, and targets of assignments, that change a whole process.
CHANGES = {
    "gc.freeze",
    "gc.disable",
    "logging.basicConfig",
    "logging.disable",
    "os.environ",
    "os.environ.setdefault",
    "signal.signal",
    "sys.stderr",
    "sys.stdout",
    "warnings.filterwarnings",
    "warnings.simplefilter",
}
#: The modules of the command line, and the step that freezes the heap for its jobs.
MAY_CHANGE = {
    "pipelines/uldp/pipelines/cli.py",
    "pipelines/uldp/pipelines/process.py",
    "transforms/uldp/transforms/decode.py",
}

#: Counts one report in a program that embeds the aggregator, and prints what the program finds changed.
PROGRAM = """
import gc, json, logging, signal, sys, warnings

import apache_beam as beam
import scipy.special  # adds a filter for a warning of its own

def state():
    handlers = {str(one): str(signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)}
    return {
        # Python 3.12 freezes a few hundred objects of its own, which never end.
        "frozen": gc.get_freeze_count() > len(gc.get_objects()),
        "collected": [gc.isenabled(), gc.get_threshold()],
        "filters": list(map(str, warnings.filters)),
        "log": [logging.root.manager.disable, logging.root.level, list(map(str, logging.root.handlers))],
        "streams": [str(sys.stdout), str(sys.stderr)],
        "handlers": handlers,
    }

with beam.Pipeline("FnApiRunner") as pipeline:
    _ = pipeline | "Start" >> beam.Create([1]) | "Id" >> beam.Map(id)
before = state()

from uldp.schemas import CollectionSpec
from uldp.schemas import Message
from uldp.schemas.records import Report
from uldp.pipelines.jobs.aggregate import JobAggregate
from uldp.transforms import Aggregate

SPEC = CollectionSpec.parse({
    "collection": "c", "version": 1, "domain": {"size": 3}, "mechanism": {"name": "rr", "epsilon": 1.0},
    "window": {"size": "1h", "allowed_lateness": "1h"},
})
TRANSFORM = {"library": Aggregate, "command": JobAggregate}[sys.argv[1]]
report = Message(Report("c", 1, bytes(16), 0, 0).encode(), 0)
with beam.Pipeline("FnApiRunner") as pipeline:
    aggregated = pipeline | beam.Create([report]) | TRANSFORM([SPEC])
    _ = aggregated.counts | beam.Map(lambda pane: sys.stdout.write(f"{pane.accounting.counted} counted\\n"))
after = state()
print(json.dumps(sorted(name for name in before if before[name] != after[name])))
"""


@pytest.mark.parametrize(("user", "changed"), [("library", []), ("command", ["frozen"])])
def test_a_program_that_counts_reports_finds_its_process_as_it_was(user: str, changed: list[str]) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), user]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    *_, counted, names = ended.stdout.splitlines()
    assert counted == "1 counted"
    assert json.loads(names) == changed


def changes(path: Path) -> Iterator[str]:
    """What a file calls or assigns that changes a whole process."""
    for node in ast.walk(parsed(path)):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Call):
            changed = [node.func]
        elif isinstance(node, ast.Assign):
            changed = node.targets
        for each in changed:
            name = ast.unparse(each.value if isinstance(each, ast.Subscript) else each)
            if name in CHANGES:
                yield name


def test_only_the_command_line_changes_its_process() -> None:
    assert set(offenders(lambda path: set(changes(path)))) == MAY_CHANGE
