"""Runs of quick tests in processes of their own, which begin with the libraries that they need in memory."""

import importlib
import multiprocessing
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest
from hypothesis import Phase, settings

#: Libraries that the tests import, and that no change alters.
LIBRARIES = ("apache_beam", "fastavro", "hypothesis", "numpy", "pydantic", "scipy.optimize", "scipy.stats", "yaml")
#: Pytest rewrites the assertions of a library when it imports it, which was before.
_QUICK = ("-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")


@dataclass(frozen=True)
class Covering:
    """Which quick tests run which lines.

    Attributes:
        seconds: How long each test took, by its id.
        lines: The tests that run a line, by file and line; of lines that run at import, none.
    """

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, Sequence[str]]]

    def tests(self, file: str, lines: range, seconds: float) -> list[str]:
        """Return tests of a file that take so many seconds together: those that run some of its lines come first."""
        of_file = self.lines.get(file, {})
        on_lines = {test for line in lines for test in of_file.get(line, ())}
        anywhere = {test for tests in of_file.values() for test in tests} or set(self.seconds)
        taken: list[str] = []
        total = 0.0
        for test in sorted(anywhere, key=lambda test: (test not in on_lines, self.seconds[test], test)):
            total += self.seconds[test]
            if taken and total > seconds:
                break
            taken.append(test)
        return taken


def prepare(tree: Path, folders: Sequence[str]) -> None:
    """Make this process, and those that it starts, import from ``tree``, and load the libraries that tests need."""
    os.chdir(tree)
    paths = [str(tree), *(str(tree / folder) for folder in folders)]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    for library in LIBRARIES:
        importlib.import_module(library)


def load(packages: Sequence[Path]) -> None:
    """Load all modules below these folders of packages, which no later change alters."""
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            name = ".".join(path.relative_to(package).with_suffix("").parts)
            importlib.import_module(name.removesuffix(".__init__"))


def forked(work: Callable[[], int], log: Path, seconds: float | None) -> int | None:
    """Do work in a process of its own; return its exit code, or None if it took too long."""

    def run() -> None:
        os.setsid()
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os._exit(work())

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(seconds)
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        return None
    return process.exitcode


def passes(tests: Sequence[str]) -> int:
    """Run tests until one fails; return pytest's exit code, 0 if all pass."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return int(pytest.main([*_QUICK, *files], plugins=[_Only(files, set(tests))]))


def cover(folders: Sequence[str], modules: Sequence[str], file: Path) -> int:
    """Run the quick tests of folders once, and write to ``file`` which lines of the modules each of them runs."""
    recorder = _Recorder(coverage.Coverage(data_file=None, include=list(modules), config_file=False))
    code = int(pytest.main([*_QUICK, *folders], plugins=[recorder]))
    file.write_text(repr((recorder.seconds, recorder.lines())), encoding="utf-8")
    return code


class _Only:
    """Selects tests, and those of one file together, since they share fixtures."""

    def __init__(self, files: Sequence[str], tests: set[str]) -> None:
        self.files, self.tests = files, tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]
        items.sort(key=lambda item: self.files.index(item.nodeid.partition("::")[0]))

    def pytest_sessionstart(self) -> None:
        """Leave a failing example as it was found: to make it small takes minutes."""
        phases = [phase for phase in Phase if phase is not Phase.shrink]
        settings.register_profile("mutants", settings.default, phases=phases)
        settings.load_profile("mutants")


class _Recorder:
    """Records the seconds of each test, and the lines that it runs."""

    def __init__(self, of: coverage.Coverage) -> None:
        self.coverage = of
        self.seconds: dict[str, float] = {}
        of.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - start
        return result

    def lines(self) -> dict[str, dict[int, list[str]]]:
        self.coverage.stop()
        data = self.coverage.get_data()
        found: defaultdict[str, dict[int, list[str]]] = defaultdict(dict)
        for file in data.measured_files():
            for line, tests in data.contexts_by_lineno(file).items():
                if known := [test for test in tests if test]:
                    found[str(Path(file).relative_to(Path.cwd()))][line] = known
        return dict(found)
