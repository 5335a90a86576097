"""What ``docs/running.md`` and ``docs/runbook.md`` say, done by a newcomer: each report counts once, in any case."""

import re
from functools import partial
from pathlib import Path

from tests.cluster.following import Results
from tests.cluster.terminal import Terminal, typed
from tests.downloads import ROOT
from uldp.schemas.records import PaneKind


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
