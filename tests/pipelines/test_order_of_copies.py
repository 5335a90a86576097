"""Of several reports with one id, a backfill counts the one that it reads first, whichever was published first."""

from pathlib import Path

import pytest

from tests import build
from tests.build import MINUTE, START
from uldp.pipelines.jobs.local import backfill, pipeline_options
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.pane import Accounting
from uldp.transforms.io.local.stream import LocalStream

HONEST, FORGED = 1, 4


@pytest.mark.parametrize(("folders", "counted"), [(("a", "b"), HONEST), (("b", "a"), FORGED)])
def test_a_report_in_a_file_that_is_read_first_takes_the_place_of_earlier_ones(
    folders: tuple[str, str], counted: int, tmp_path: Path
) -> None:
    """The forged report was published fifty minutes after the honest one. A stream would have called it a copy."""
    for folder, symbol, minute in zip(folders, (HONEST, FORGED), (0, 50), strict=True):
        stream = LocalStream.create(tmp_path / "archive" / folder, simulated_clock=True)
        stream.append([build.message(build.report(1, symbol), START + minute * MINUTE)])
        stream.close()
    spec = build.spec(mechanism={"name": "rr", "epsilon": 1.0})
    backfill([spec], tmp_path / "archive", tmp_path / "results", pipeline_options([]))
    (pane,) = ResultsFolder(tmp_path / "results").statistics()
    assert pane.cells.tolist() == [int(symbol == counted) for symbol in range(5)]
    assert pane.accounting == Accounting(received=2, counted=1, duplicate=1)
