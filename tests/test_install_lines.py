"""No page, script or error tells a reader to install from an index what is not there: it could be a stranger's.

Until a release, the project's own packages come from a clone or from a file; packages of others are in a list here.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[1]
#: What is installed by name: packages of others, which are known to be theirs.
OF_OTHERS = {
    "pip": {"apache-beam", "apache-flink-libraries", "cyclonedx-bom", "pip", "pip-audit", "twine", "tzdata"},
    "npm": set[str](),
    "maven": {
        "com.github.jbellis",
        "org.apache.beam",
        "org.apache.kafka",
        "org.apache.maven.plugins",
        "org.jetbrains.dokka",
        "org.jetbrains.kotlin",
        "org.jetbrains.kotlinx",
        "org.slf4j",
        "org.xerial",
    },
}
COMMANDS = {
    "pip": re.compile(
        r"\b(?:pip3? (?:install|download|wheel)|pipx (?:install|run)|uvx|uv (?:add|tool (?:run|install)))\b(.*)"
    ),
    "npm": re.compile(r"\b(?:npm (?:install|i|add|exec)|npx|yarn add|pnpm add)\b(.*)"),
}
#: Options whose value is another word.
WITH_A_VALUE = {
    "--requirement",
    "-r",
    "--python",
    "--resolution",
    "--wheel-dir",
    "-d",
    "--vulnerability-service",
    "--progress-spinner",
}
#: The beginning of a path, a variable, or a field of an f-string.
PATH = re.compile(r"[./~$*{\[]|dist/|\w+://")
#: Coordinates of a package in Maven's repositories, as builds of Gradle write them.
COORDINATES = re.compile(r"""["'`]([\w.-]+):uldp[\w-]*:""")


def requirements(tool: str, line: str) -> Iterator[str]:
    """The packages that the commands of a tool in a line install by name."""
    for found in COMMANDS[tool].finditer(line):
        # A command in a sentence ends with a back-tick or a condition, and one in a shell with an operator.
        shown = re.split(r"`|&&|\|\||;| \| |\\$|(?<=\s)#| if ", found[1], maxsplit=1)[0]
        try:
            words = shlex.split(shown)
        except ValueError:  # an apostrophe or a quotation mark of the sentence or the program around it
            words = shlex.split(re.sub(r"""['"]""", " ", shown))
        skip = False
        for word in words:
            word = word.strip("\"',.()")
            if skip or not word or word.startswith("-"):
                skip = word in WITH_A_VALUE
                continue
            if " @ " in word or PATH.match(word) or word.endswith((".whl", ".tgz", ".lock", ".txt")):
                continue
            name = re.split(r"[\[<>=~!@ ]", word)[0]
            if re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
                yield name
            if tool == "npm" or found[0].startswith(("uvx", "uv tool run", "pipx run")):
                break  # what comes after it are its own arguments


def text_files() -> list[Path]:
    """What git holds, or would: no tests, whose strings are compared with errors, and no locks."""
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    files = [ROOT / name for name in names.stdout.decode().splitlines()]
    kinds = {".md", ".py", ".sh", ".ipynb", ".html", ".toml", ".yaml", ".yml", ".kt", ".ts", ".h", ""}
    return [
        file for file in files if file.suffix in kinds and file.is_file() and file.relative_to(ROOT).parts[0] != "tests"
    ]


def installed_by_name(tool: str) -> dict[str, set[str]]:
    """Each package that a file names to a tool, and the places."""
    found: dict[str, set[str]] = {}
    for file in text_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if file.suffix == ".md":
            text = re.sub(r"`([^`\n]+)\n([^`\n]+)`", r"`\1 \2`\n", text)  # a command may go on in the next line
        for number, line in enumerate(text.splitlines(), 1):
            for name in requirements(tool, line):
                found.setdefault(name, set()).add(f"{file.relative_to(ROOT)}:{number}")
    return found


@pytest.mark.parametrize("tool", COMMANDS)
def test_what_is_installed_by_name_is_of_others(tool: str) -> None:
    found = installed_by_name(tool)
    strange = {name: places for name, places in found.items() if name not in OF_OTHERS[tool]}
    assert strange == {}, "name a path or a file, or add the package of others to this test"


def test_dependencies_of_poms_are_of_others() -> None:
    for pom in [file for file in ROOT.rglob("pom.xml") if not {"target", "build"} & {*file.relative_to(ROOT).parts}]:
        groups = {each.findtext("{*}groupId") for each in ElementTree.parse(pom).iterfind(".//{*}dependency")}
        assert groups <= OF_OTHERS["maven"], pom


def test_pages_name_the_client_by_a_group_that_nobody_can_own() -> None:
    for page in [file for file in text_files() if file.suffix == ".md"]:
        assert set(COORDINATES.findall(page.read_text(encoding="utf-8"))) <= {"invalid.uldp"}, page


@pytest.mark.parametrize(
    ("tool", "line", "names"),
    [
        ("pip", "pip install uldp-stream", ["uldp-stream"]),
        ("pip", "Install it: `pip install 'uldp-stream[serve]'`, and go on", ["uldp-stream"]),
        ("pip", "pip install '.[beam,report]'", []),
        ("pip", "pip install 'uldp-stream[beam] @ file:///clone'", []),
        ("pip", "installs with `pip install`, beside the project", []),
        ("pip", "    return f\"pip install '{of}[{','.join(extras)}]{source}'\"", []),
        ("npm", "npm install uldp-client && node device.mjs", ["uldp-client"]),
        ("npm", "(cd clients/typescript && npm ci) && npm install ./clients/typescript", []),
    ],
)
def test_names_are_found_and_paths_are_not(tool: str, line: str, names: list[str]) -> None:
    assert list(requirements(tool, line)) == names
