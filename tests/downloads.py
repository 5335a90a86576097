"""What tests download or build once: it is kept for all of them, for the next run, and for other clones of this user.

It lies in ``uldp-stream`` of the user's folder for caches, ``$XDG_CACHE_HOME`` or ``~/.cache``, and may be removed at
any time. ``make clean`` leaves it there.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from uldp.schemas.regular_files import is_at

ROOT = Path(__file__).parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uldp-stream"
#: Fills an empty folder.
Fill = Callable[[Path], object]


def kept(name: str, key: object, fill: Fill) -> Path:
    """Return a folder of the cache, filled if it is not there.

    One process at a time fills it: tests run in several. A folder that was not filled to the end is filled anew.

    Args:
        name: Says what is in it.
        key: All that its content follows from, as a version or a file's bytes: another key has another folder.
        fill: Fills the folder, which is empty, where it is: it is not moved.
    """
    folder = CACHE / f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:12]}"
    filled = folder / ".filled"
    with locked(CACHE / f"{folder.name}.lock"):
        if not filled.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fill(folder)
            filled.touch()
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; the cache may be removed while a process waits for it."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            if is_at(lock.fileno(), path):
                yield
                return


def pip(command: str, *arguments: object, python: str | Path = sys.executable) -> None:
    """Run a command of pip's, for this environment or that of another Python."""
    quietly = ["--quiet", "--disable-pip-version-check"]
    subprocess.run([python, "-m", "pip", command, *quietly, *map(str, arguments)], check=True)


def maven(pom: Path, *arguments: str) -> None:
    """Run Maven on a pom."""
    subprocess.run(["mvn", "--quiet", "--batch-mode", "--file", pom, *arguments], check=True)


def kafka_jars() -> Path:
    """Return the class path of a broker and of its tools."""
    pom = ROOT / "deploy" / "local" / "kafka.xml"

    def download(folder: Path) -> None:
        maven(pom, "dependency:copy-dependencies", f"-DoutputDirectory={folder}")

    return kept("kafka", pom.read_bytes(), download)


def _go(name: str) -> str:
    found = shutil.which("go")
    if found is None:
        raise RuntimeError(f"go is not installed; {name} needs Go 1.25 or newer")
    return found


def installed(name: str, module: str) -> Path:
    """Return a program of a published module of Go's, with its version."""

    def install(folder: Path) -> None:
        subprocess.run([_go(name), "install", module], env=os.environ | {"GOBIN": str(folder)}, check=True)

    return kept(name, module, install) / name


def built(name: str, source: Path, package: str = ".", *options: str) -> Path:
    """Return a program that a folder with a ``go.mod`` holds, or names."""

    def build(folder: Path) -> None:
        subprocess.run([_go(name), "build", *options, "-o", str(folder), package], cwd=source, check=True)

    files = [(file.name, file.read_bytes()) for file in sorted(source.iterdir())]
    return kept(name, (package, options, files), build) / name
