"""A trial of the image, where a builder and the registry of its bases are."""

import re
import shutil
from pathlib import Path

from tests.release.trial import LeftOut, Trial, TrialError

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "deploy" / "image" / "Dockerfile"
#: What builds from a Dockerfile without a daemon.
BUILDERS = ("buildah", "podman")
_REMEDY = "deploy/releasing.md says how to build it elsewhere, and tests/deploy runs its steps without an image"


def image(trial: Trial) -> str:
    """Build the image of workers; its last step asks pip whether what is installed fits."""
    builder = next(filter(shutil.which, BUILDERS), None)
    if builder is None:
        raise LeftOut(f"neither {' nor '.join(BUILDERS)} is here; {_REMEDY}")
    (base,) = re.findall(r"^ARG PYTHON=(\S+)$", RECIPE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    try:
        trial.run(builder, "pull", base)
    except TrialError:
        raise LeftOut(f"{builder} gets {base} from no registry; {_REMEDY}") from None
    trial.run(builder, "build", "--file", RECIPE, "--target", "worker", "--tag", "uldp-stream-trial", ROOT)
    return f"built by {builder}"
