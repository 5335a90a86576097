"""No module needs what another system lacks: ``tests.elsewhere`` knows what that is."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.elsewhere import PARTLY, lacking, lacking_modules
from tests.test_layering import MODULES, NAMES, id_of, parsed

#: The modules that ask whether the system has it.
ASKING = ("schemas/uldp/schemas/locks.py", "schemas/uldp/schemas/regular_files.py")
#: What is behind a look at the platform, and what a job alone runs, on Linux and macOS.
ELSEWHERE = {
    "mechanisms/uldp/mechanisms/devices/clock.py": {"time.CLOCK_BOOTTIME", "time.clock_gettime_ns"},
    "pipelines/uldp/pipelines/intake/clock.py": {"time.clock_gettime"},
    "pipelines/uldp/pipelines/process.py": {"signal.pthread_kill"},
}


def named(path: Path) -> Iterator[str]:
    """The modules of the standard library that a file imports, and the names of these that it uses."""
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.Attribute(ast.Name(module), name):
                yield f"{module}.{name}"


def missing() -> frozenset[str]:
    """What Windows or macOS lacks, and hard links: some systems and many file systems have none."""
    partly = {f"{module}.{name}" for module in PARTLY for on in ("win32", "darwin") for name in lacking(module, on)}
    return frozenset(partly | lacking_modules() | {"os.link"})


def test_what_systems_lack_is_known() -> None:
    assert {"fcntl", "resource", "pwd", "os.getuid", "os.O_DIRECTORY", "os.O_NOFOLLOW", "os.fork"} <= missing()
    assert {"signal.SIGKILL", "socket.AF_UNIX", "select.epoll", "os.sched_getaffinity"} <= missing()
    assert not {"os", "os.replace", "os.O_CREAT", "signal.SIGTERM", "errno.EPERM"} & missing()


def test_no_module_names_what_a_system_lacks() -> None:
    found = {id_of(path): set(named(path)) & missing() for path in MODULES}
    assert {name: uses for name, uses in found.items() if uses} == ELSEWHERE
    assert set(ASKING) <= found.keys()


@pytest.mark.slow
def test_every_module_can_be_imported_where_that_is_missing() -> None:
    """Those of jobs too: a job says what it needs when it runs."""
    program = """if True:
        import json, sys
        from importlib import import_module
        from tests.elsewhere import hide
        hide(links=False)
        refused = {}
        for name in json.load(sys.stdin):
            try:
                import_module(name)
            except Exception as error:
                refused[name] = repr(error)
        print(json.dumps(refused))
    """
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=json.dumps([*NAMES]), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}
