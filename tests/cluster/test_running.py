"""What ``docs/running.md`` and ``docs/runbook.md`` say, done by a newcomer: each report counts once, in any case."""

import re
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.following import Results
from tests.cluster.terminal import Terminal, typed
from tests.downloads import ROOT
from tests.listening import Listener
from uldp.schemas.pane import PaneKind

#: The programs of Beam that cannot be bound to the loopback interface, as docs/ports.md says.
OPEN = {"org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "org.apache.beam.runners.flink.FlinkJobServerDriver"}


def main_class(listener: Listener) -> str:
    """Return the class that a JVM runs, or the arguments of another program."""
    found = re.search(r" (org\.apache\.[\w.]+|kafka\.Kafka)( |$)", listener.program)
    return found[1] if found else listener.program


@pytest.mark.nightly
def test_a_newcomer_gets_the_same_counts_from_each_runner_and_keeps_them(tmp_path: Path) -> None:
    folder = tmp_path / "build" / "local"
    names = ("backfilled", "from-kafka", "by-prism", "by-flink", "corrected")
    backfilled, from_kafka, by_prism, by_flink, corrected = (Results(folder / name) for name in names)

    def complete(name: str) -> bool:
        results = Results(tmp_path / name)
        closed = all(pane.pane.kind is not PaneKind.EARLY for pane in results.panes())
        return closed and results.total().received == backfilled.total().received

    with Terminal(tmp_path) as terminal:
        *steps, end = typed(ROOT / "docs" / "running.md")
        for block in steps:
            for name in re.findall(r"^uldp show (\S+)$", block.text, flags=re.MULTILINE):
                if f"--to {name}" not in block.text:  # what runs in the background takes its time
                    terminal.wait_until(partial(complete, name), f"{name} is complete")
            terminal.type_in(block)
        assert {main_class(listener) for listener in terminal.listeners() if not listener.is_loopback} == OPEN
        counted = by_flink.total()
        for block in typed(ROOT / "docs" / "runbook.md"):
            terminal.type_in(block)
            assert by_flink.total() == counted, block.where
        terminal.type_in(end)
    assert len(backfilled.panes()) == 3
    assert from_kafka.counts() == corrected.counts() == backfilled.counts()
    assert by_flink.counts() == by_prism.counts()
    assert by_prism.total() == counted
    assert counted.counted + counted.late == backfilled.total().counted
