"""Windows that count no report: late and rejected reports may name any number, and each keeps its accounting."""

from pathlib import Path

import pytest

from tests import build
from tests.build import MINUTE, START
from uldp.pipelines.jobs import local
from uldp.pipelines.jobs.progress import summary
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.pipelines.results.selection import Selection
from uldp.schemas.pane import Accounting
from uldp.schemas.records import Message
from uldp.transforms.io.local.stream import LocalStream

#: Windows that late or rejected reports name.
WINDOWS = 200
SPEC = build.spec(domain={"size": 5000}, mechanism={"name": "identity"}, window={"size": "1m"})


def message(number: int, *, minute: int, symbol: int, published: int) -> Message:
    return build.message(build.report(number, symbol, START + minute * MINUTE), published)


@pytest.fixture(params=["late", "rejected"])
def fate(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def out(fate: str, tmp_path: Path) -> Path:
    """Results of a stream with one counted report, and one that is late or rejected for each of the other windows."""
    stream = LocalStream.create(tmp_path / "stream", simulated_clock=True)
    end = START + WINDOWS * MINUTE
    stream.append([message(0, minute=WINDOWS, symbol=1, published=end)])
    symbol = 1 if fate == "late" else 5000
    published = end + MINUTE if fate == "late" else end
    stream.append([message(1 + minute, minute=minute, symbol=symbol, published=published) for minute in range(WINDOWS)])
    stream.close()
    options = local.pipeline_options([])
    local.follow([SPEC], stream.path, tmp_path / "out", options)
    return tmp_path / "out"


def test_they_share_files_and_keep_the_accounting_law(out: Path, fate: str) -> None:
    panes = newest(ResultsFolder(out).statistics())
    once = Accounting(received=1, **{fate: 1})
    assert [pane.accounting for pane in panes] == [once] * WINDOWS + [Accounting(1, 1)]
    assert sum(len(pane.cells) for pane in panes) == WINDOWS + 5000
    files = list((out / "counts").rglob("*.avro"))
    assert len(files) < 20
    total = Accounting(WINDOWS + 1, 1, **{fate: WINDOWS})
    assert f"c v1: {WINDOWS + 1} windows, {total.received} received = 1 counted" in summary(out)
    assert f"in all: {total.received} received = 1 counted" in summary(out)


def test_they_are_shown_without_an_estimate(out: Path) -> None:
    estimates, unpublished, *_ = ResultsFolder(out).current()
    assert (len(estimates), len(unpublished)) == (1, WINDOWS)
    estimates, unpublished, *_ = ResultsFolder(out).current(Selection(last=2))
    assert (len(estimates), len(unpublished)) == (1, 1)
