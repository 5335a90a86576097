"""Results of three hours, and a server of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("starlette")
from tests.pipelines.command import SPEC
from tests.pipelines.serve.serving import Serving
from uldp.pipelines.cli import cli


@pytest.fixture(scope="session")
def results(simulated: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("served") / "results"
    done = CliRunner().invoke(cli, ["backfill", "--spec", SPEC, "--from", str(simulated), "--to", str(out)])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="session")
def site(results: Path) -> Iterator[Serving]:
    with Serving(results) as serving:
        yield serving
