"""What many windows cost."""

from benchmarks import panes


def test_each_command_has_a_row_and_files_are_few() -> None:
    rows = list(panes.measure("40 panes", 1, 40, panes.MINUTE))
    assert [row.label for row in rows] == [
        "backfill of 40 panes",
        "show --json, 40 panes",
        "show, 40 panes",
        "show --last 1, 40 panes",
    ]
    assert all(row.seconds and row.megabytes for row in rows)
    # The spec, the identity of the job, its journal, and a file each of counts and of estimates.
    assert rows[0].remark.startswith("5 files, ")
