"""A person who types into one terminal what a page of the documents says, in a clone of the repository."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.daemons import wait_until
from tests.docs.test_documents import Block, blocks
from tests.downloads import ROOT
from tests.listening import Listener, listeners_of_session

#: What the text above a block says where nobody here can run it.
ELSEWHERE = re.compile(r"\b[Nn]eeds (an engine|a cluster|a cloud account)\b")


def typed(page: Path) -> list[Block]:
    """Return the blocks of commands of a page that can be run on this machine, but for the making of environments."""
    plain = [block for block in blocks(page) if not block.language]
    return [block for block in plain if not ELSEWHERE.search(block.before) and "pip install" not in block.text]


@dataclass
class Terminal:
    """A shell that ends at the first command that fails; a context manager.

    Attributes:
        folder: The clone: what a user needs of the repository is copied there.
        log: All that is printed.
    """

    folder: Path
    log: Path = field(init=False)
    _typed: int = field(default=0, init=False, repr=False)

    def __enter__(self) -> Self:
        for name in ("deploy", "examples"):
            shutil.copytree(ROOT / name, self.folder / name)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.log = self.folder / "terminal.log"
        with self.log.open("wb") as log:
            self._shell = subprocess.Popen(
                ["bash", "-euo", "pipefail"],
                cwd=self.folder,
                env=os.environ | {"PATH": path},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that what it leaves behind can be found
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._shell.pid, signal.SIGTERM)
        self._shell.kill()
        self._shell.communicate()

    def type_in(self, block: Block, seconds: float = 300) -> None:
        """Type a block, and wait until its last command has ended or is in the background."""
        self._typed += 1
        done = self.folder / f"block-{self._typed}"
        assert self._shell.stdin is not None
        self._shell.stdin.write(f"{block.text}\ntouch '{done}'\n".encode())
        self._shell.stdin.flush()
        self.wait_until(done.exists, block.where, seconds)

    def listeners(self) -> set[Listener]:
        """Return the ports of all that the shell has started and that still runs."""
        return listeners_of_session(self._shell.pid)

    def wait_until(self, condition: Callable[[], object], what: str, seconds: float = 300) -> None:
        """Wait for what commands bring about.

        Raises:
            RuntimeError: if one failed; holds the end of the log.
        """

        def goes_on() -> bool:
            if self._shell.poll() is not None:
                raise RuntimeError(f"{what}:\n{self.log.read_text(encoding='utf-8', errors='replace')[-4000:]}")
            return bool(condition())

        wait_until(goes_on, what, seconds)
