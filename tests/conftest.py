"""Settings of all tests."""

import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.importing import not_imported
from tests.unsynchronized import fsync
from tests.warm import warm_processes

# Workers of tests that compute with two threads each wait for one another. NumPy reads this when it is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run, and no deadline: a loaded machine is no failure.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("repeatable")

#: Whether the environment asks for the tests of the nightly run.
NIGHTLY = os.environ.get("ULDP_NIGHTLY") == "1"
#: Whether it asks for those of brokers and clusters.
CLUSTER = os.environ.get("ULDP_CLUSTER") == "1"


def pytest_configure(config: pytest.Config) -> None:
    """While a mechanism cannot be imported, run the test alone that names it: nearly all others would fail with it."""
    here = Path(__file__).parent
    if here in {config.invocation_params.dir / path for path in config.args} and not_imported():
        config.args[:] = [f"{here / 'test_pieces_of_a_mechanism.py'}::test_each_mechanism_has_its_pieces"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one worker, where groups are asked for, but not tests that take minutes each."""
    if config.getvalue("dist") != "loadgroup" or CLUSTER or NIGHTLY:
        return None
    from tests.scheduling import OfFiles

    return OfFiles(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of the nightly run, with those of benchmarks, unless the environment asks for them."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent / "benchmarks"):
            item.add_marker(pytest.mark.nightly)
    if not NIGHTLY:
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="takes minutes; set ULDP_NIGHTLY=1, or run make nightly"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how large the matrix of faults was, if it has run; see ``tests.faults``."""
    reports = [report for of in ("passed", "failed") for report in terminalreporter.stats.get(of, ())]
    cells = sum(value for report in reports for name, value in report.user_properties if name == "cells")
    if cells:
        terminalreporter.write_line(f"tests/faults: {cells:,} damaged files under commands")


@pytest.fixture(autouse=True, scope="session")
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep temporary files where pytest removes them: Beam leaves a folder for each pipeline that never runs."""
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.getbasetemp())
    yield
    tempfile.tempdir = before


@pytest.fixture(autouse=True, scope="session")
def _unsynchronized_files() -> Iterator[None]:
    """Do not wait for the disk; ``tests.transforms.io.test_durable_writes`` holds what waits for it, and when."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


@pytest.fixture(autouse=True, scope="session")
def _remembered_specs() -> Iterator[None]:
    """Spend on the tests of steps what a local job spends on them."""
    # Not at the top: the process that only gives tests to workers needs no Beam, and they wait until it has started.
    from uldp.transforms.io.local.lighter_runner import remembered_specs

    with remembered_specs():
        yield


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """Take back what a command of a test has changed in the logs of this process, which the tests after it read."""
    yield
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("uldp.") and isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.setLevel(logging.NOTSET)
            logger.propagate = True


@pytest.fixture(scope="session")
def warm() -> Iterator[Path]:
    """A directory with ``uldp`` and ``python`` that start at once; see ``tests.warm``."""
    with tempfile.TemporaryDirectory(prefix="warm") as folder, warm_processes(Path(folder)) as commands:
        yield commands


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a database of a server that the tests of this process share; see ``tests.postgresql``."""
    pytest.importorskip("psycopg")
    from tests.postgresql import serving

    with serving() as url:
        yield url
