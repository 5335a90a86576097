"""The first spec of the README, as its reader does it: files to write, and commands to type."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def first_spec(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the files by their names, and the commands, of the section; what activates an environment is left out.

    Raises:
        ValueError: if the section does not have a spec, a truth and commands.
    """
    section = re.search(r"^## A first spec of your own$(.*?)^## ", text, flags=re.MULTILINE | re.DOTALL)
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", section[1] if section else "", flags=re.MULTILINE | re.DOTALL))
    if not {"yaml", "csv", "console"} <= blocks.keys():
        raise ValueError("README.md: the first spec has no block of yaml, csv or console")
    commands = [line for line in blocks["console"].splitlines() if line.startswith("uldp ")]
    return {"survey.yaml": blocks["yaml"], "truth.csv": blocks["csv"]}, commands
