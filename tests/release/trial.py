"""A trial of an artefact: an empty folder, commands that have to end well in it, and a failure that names both."""

import os
import shlex
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

#: After so long a command hangs, on however slow a machine.
HANGS_AFTER_SECONDS = 1200
#: Variables that would let a command find what is installed elsewhere.
_KNOW_ANOTHER = (
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_PATH",
    "CLASSPATH",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
)


class TrialError(Exception):
    """An artefact does not do what it has to: the message names it, the command, and what that printed."""


class LeftOut(Exception):  # noqa: N818 (it is no error: this machine lacks what the trial needs)
    """A trial cannot be made on this machine; the message says why."""


@dataclass(frozen=True)
class Trial:
    """One artefact of a folder, and where it is tried.

    Attributes:
        name: The name of the artefact's kind, as ``wheel``.
        dist: The folder of all artefacts.
        folder: Where commands run; empty at first.
    """

    name: str
    dist: Path
    folder: Path

    def artefact(self, pattern: str) -> Path:
        """Return the one file of ``dist`` that a pattern matches.

        Raises:
            TrialError: if there is none, or more than one.
        """
        found = sorted(self.dist.glob(pattern))
        if len(found) != 1:
            raise TrialError(f"{self.name}: {self.dist} has {len(found)} files {pattern}; one is needed")
        return found[0]

    def fail(self, command: str, why: str) -> TrialError:
        """Return the error of a command."""
        return TrialError(f"{self.name}: {command}\n{why}")

    def run(self, *command: str | Path, cwd: Path | None = None, fails: bool = False) -> str:
        """Run a command, and return what it prints; with ``fails``, what a command prints that has to fail.

        Raises:
            TrialError: if it ends otherwise, or hangs.
        """
        shown = shlex.join(map(str, command))
        environment = {key: value for key, value in os.environ.items() if key not in _KNOW_ANOTHER}
        try:
            done = subprocess.run(
                command,
                cwd=cwd or self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=HANGS_AFTER_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise self.fail(shown, str(error)) from None
        if (done.returncode != 0) != fails:
            raise self.fail(shown, f"exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def expect(self, wanted: str, *command: str | Path, fails: bool = False) -> str:
        """Run a command, and return what it prints, which has to hold a text.

        Raises:
            TrialError: if it does not.
        """
        printed = self.run(*command, fails=fails)
        if wanted not in printed:
            raise self.fail(shlex.join(map(str, command)), f"does not print {wanted!r}, but\n{printed}")
        return printed

    def environment(self, name: str, *requirements: str | Path) -> Path:
        """Make an environment of the Python that runs this, install into it alone, and return its ``bin``."""
        venv.create(self.folder / name, with_pip=True)
        programs = self.folder / name / "bin"
        self.run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
        return programs
