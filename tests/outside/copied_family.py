"""A family of this project as somebody else would write it: the same folder as a package, under another name."""

import re
import shutil
from pathlib import Path

from uldp.mechanisms.families import geometric

NAME = "noisy-mean"
PROJECT = """
[project]
name = "noisy-mean"
version = "1.0"
dependencies = ["uldp-stream"]

[project.entry-points."uldp.families"]
noisy-mean = "noisy_mean.spec:GeometricSpec"

[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"
"""


def write_copy(project: Path) -> Path:
    """Write the package of the family ``geometric``, which differs by its name and imports; returns its folder."""
    module = project / "noisy_mean"
    shutil.copytree(Path(geometric.__file__).parent, module, ignore=shutil.ignore_patterns("__pycache__"))
    for path in module.glob("*.py"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")
    (project / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    return project


def renamed(source: str) -> str:
    """Give a source the other name, and let it import only names that packages of this project declare as public."""
    source = source.replace(geometric.__name__, "noisy_mean").replace('"geometric"', f'"{NAME}"')
    return re.sub(r"(?m)^from uldp\.(schemas|mechanisms)\.(?!arrays )\S+ import", r"from uldp.\1 import", source)
