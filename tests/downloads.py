"""What tests download or build once: it is kept in ``build/cluster``, for all of them and for the next time."""

import fcntl
import subprocess
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

ROOT = Path(__file__).parents[1]
CACHE = ROOT / "build" / "cluster"


def once(fetch: Callable[P, T]) -> Callable[P, T]:
    """Let one process at a time look whether something is there, and fetch it: tests run in several.

    What is fetched so may not fetch something else so.
    """

    @wraps(fetch)
    def fetch_alone(*args: P.args, **kwargs: P.kwargs) -> T:
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # until it is closed
            return fetch(*args, **kwargs)

    return fetch_alone


@once
def jars(pom: Path, name: str) -> Path:
    """Return a folder of that name with all that a pom depends on, downloaded if it is not there."""
    folder = CACHE / name
    if not folder.exists():
        aside = CACHE / f".{name}"
        maven = ["mvn", "--quiet", "--batch-mode", "--file", str(pom), "dependency:copy-dependencies"]
        subprocess.run([*maven, f"-DoutputDirectory={aside}"], check=True)
        aside.rename(folder)
    return folder


def kafka_jars() -> Path:
    """Return the class path of a broker and of its tools."""
    return jars(ROOT / "deploy" / "local" / "kafka.xml", "kafka")
