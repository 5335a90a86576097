"""The image's recipe, as its stages and their instructions."""

import re
from dataclasses import dataclass, field

from tests.deploy.tools import DEPLOY

DOCKERFILE = DEPLOY / "image" / "Dockerfile"


@dataclass
class Stage:
    """A part of a Dockerfile that begins with FROM: its base, and instructions with their arguments."""

    base: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)


def parse(text: str) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage with their values, and the stages, variables filled in."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines():
        if not line:
            continue
        instruction, value = line.split(maxsplit=1)
        value = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], value)
        if instruction == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", value).groups()  # type: ignore[union-attr]
            stages.append(Stage(base, name))
        elif instruction == "ARG":
            arguments.update([value.split("=", 1)])  # type: ignore[list-item]
        else:
            stages[-1].instructions.append((instruction, value))
    return arguments, stages


ARGUMENTS, STAGES = parse(DOCKERFILE.read_text(encoding="utf-8"))
(_USER,) = re.findall(r"RUN useradd --uid (\d+) ", DOCKERFILE.read_text(encoding="utf-8"))
#: Whom the image can run as. Beam's entrypoint fails as somebody whom the system does not know.
USER = int(_USER)
