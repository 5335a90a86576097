"""The benchmark of panes: that its two jobs differ in the number of panes alone."""

import pytest

from benchmarks import panes_in_stream as panes
from uldp.pipelines.jobs import local as jobs


@pytest.mark.slow
def test_each_collection_has_a_pane_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = []

    def follow(specs: list[object], stream: object, out: object, *_: object, **__: object) -> None:
        followed.append((len(specs), len(list(stream.iterdir()))))  # type: ignore[attr-defined]

    monkeypatch.setattr(jobs, "follow", follow)
    monkeypatch.setattr(panes, "alone", lambda call, *arguments: (call(*arguments), 7.0))
    few, many = panes.rows(quick=True)
    assert (few.label, many.label) == ("2 panes in a stream", "20 panes in a stream")
    assert few.n == many.n == 10 * 2 * panes.IN_PANE
    assert [collections for collections, _ in followed] == [1, 10]
    assert followed[0][1] == followed[1][1] >= 2 * panes.MINUTES
