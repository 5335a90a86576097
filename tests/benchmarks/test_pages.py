"""The benchmark of pages, on few windows."""

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
from benchmarks import pages


@pytest.mark.slow
def test_both_pages_are_made_and_are_light() -> None:
    rows = list(pages.rows(quick=True))
    assert [row.label for row in rows] == list(pages.PAGES)
    for row in rows:
        assert row.seconds is not None
        assert row.seconds > 0
        assert 0 < float(row.remark.removesuffix(" MB")) < 2
