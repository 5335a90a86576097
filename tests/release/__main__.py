"""Try what a release publishes: python -m tests.release DIST [TRIAL...]; without a name, all of them.

It needs nothing but Python, so that it runs under each version. Artefacts are installed into new folders, and each line
says what was tried. The first trial that fails ends it.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.release import clients, files, image, python
from tests.release.trial import LeftOut, Trial, TrialError

#: A line is read while the next trial runs.
say = partial(print, flush=True)
#: Trials by their names: the cheap ones first.
TRIALS: dict[str, Callable[[Trial], str]] = {
    "sums": files.sums,
    "sbom": files.sbom,
    "site": files.site,
    "sdist": python.sdist,
    "wheel": python.wheel,
    "npm": clients.npm,
    "jar": clients.jar,
    "image": image.image,
}


def main(dist: Path, names: list[str]) -> int:
    """Make trials, print a line for each, and return the exit code."""
    for name in names:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix=f"uldp-{name}-") as folder:
            try:
                passed = TRIALS[name](Trial(name, dist, Path(folder)))
            except LeftOut as reason:
                say(f"LEFT OUT {name}: {reason}")
                continue
            except TrialError as error:
                sys.stderr.write(f"error: {error}\n")
                return 1
        say(f"passed {name}: {passed} ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= TRIALS.keys():
        sys.exit(f"usage: python -m tests.release DIST [{'|'.join(TRIALS)}]...")
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:] or [*TRIALS]))
