"""What uldp check says of the grid of a domain."""

import pytest

from tests import build
from uldp.pipelines.results.text import spec_text

RECORD = {"record": {"place": {"size": 6, "columns": 3}, "app": {"labels": ["a", "b"]}}}
OF = {"name": "sample-one", "epsilon": 1.0, "of": {"place": {"name": "oue"}, "app": {"name": "rr"}}}


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        ({"domain": {"size": 6}}, []),
        ({"domain": {"size": 6, "columns": 2}}, ["3 rows of 2, row 0 at the bottom; for maps alone"]),
        ({"domain": RECORD, "mechanism": OF}, ["place: 2 rows of 3, row 0 at the bottom; for maps alone"]),
    ],
)
def test_a_grid_has_a_line(keys: dict[str, object], rows: list[str]) -> None:
    text = spec_text(build.spec(**keys), 1000)
    assert [row.split(maxsplit=1)[1] for row in text.splitlines() if row.startswith("  grid ")] == rows
