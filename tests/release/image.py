"""A trial of the image, where a builder and the registry of its bases are."""

import shutil
from pathlib import Path

from tests.release.trial import LeftOut, Trial, TrialError

ROOT = Path(__file__).parents[2]
#: What builds from a Dockerfile without a daemon, with the arguments before the folder.
_BUILDERS = {"buildah": ("build",), "podman": ("build",)}
_REMEDY = "deploy/releasing.md says how to build it elsewhere, and tests/deploy runs its steps without an image"


def image(trial: Trial) -> str:
    """Build the image of workers, and start its command."""
    builder = next((name for name in _BUILDERS if shutil.which(name)), None)
    if builder is None:
        raise LeftOut(f"neither {' nor '.join(_BUILDERS)} is here; {_REMEDY}")
    recipe = ("--file", ROOT / "deploy" / "image" / "Dockerfile", "--target", "worker", "--tag", "uldp-stream-trial")
    base = "python:3.11-slim-bookworm"
    try:
        trial.run(builder, "pull", "--quiet", base)
    except TrialError:
        raise LeftOut(f"no registry gives {base}; {_REMEDY}") from None
    trial.run(builder, *_BUILDERS[builder], *recipe, ROOT)
    return f"built by {builder}"
