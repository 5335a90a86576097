"""The documents: what they show is what happens, what they list is complete, and their links lead somewhere.

The blocks of a document are taken in order, in one new directory that holds what a clone holds after ``make demo``, and
in one shell. README says how a shell gets the project's environment, and docs/index.md that all other pages need it:
for them, the harness activates it.

- ``console`` and ``bash``: lines that begin with ``$ `` are commands, and the lines below are what each prints. Without
  such a line, all are commands. A command fails only where what it prints is shown to be an error.
- ``python``: a program, which ``python`` runs, and which prints no error or warning. ``text``: what it prints.
- ``yaml``, ``csv``, ``toml`` and ``c``: a file, of the last name with that ending that the text above says.

In what is shown, ``...`` stands for anything.
"""

import doctest
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

import pytest

from uldp.pipelines.cli import cli
from uldp.schemas import flags
from uldp.schemas.framing import load_schema
from uldp.schemas.reasons import MEANING
from uldp.schemas.records import Report, ReportBatch
from uldp.schemas.specs import families, kinds
from uldp.schemas.specs.estimators import EstimatorName
from uldp.schemas.specs.families import mechanism_names
from uldp.transforms.io import schemes
from uldp.transforms.metrics import CounterName

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for name in ("spec", "estimates", "client") for page in sorted((ROOT / "docs" / name).glob("*.md"))),
]
FOLDERS_OF_PAGES = ("docs", "examples", "benchmarks", "tests/fuzz")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    *(page for name in FOLDERS_OF_PAGES for page in sorted((ROOT / name).rglob("*.md"))),
]
#: Targets of the Makefile make the environment that tests run in, or take minutes. Continuous integration runs them.
ELSEWHERE = "make "
#: Variables by which a shell knows an environment of Python.
OF_AN_ENVIRONMENT = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}
ACTIVATION = ". .venv/bin/activate"
#: After so long a command hangs, on however slow a machine.
HANGS_AFTER_SECONDS = 600
#: What is no option of ours: a help page's, the mutation run's, and Beam's, most of which have an underscore.
OTHER_OPTIONS = {"--help", "--runner", "--date"}
FOLDERS = ("schemas", "mechanisms", "collector", "transforms", "pipelines", "tests", "examples", "docs", "benchmarks")


@dataclass(frozen=True)
class Block:
    """A fenced block, where it stands, and the text between it and the block before."""

    where: str
    language: str
    text: str
    before: str

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command with what it is shown to print, empty where nothing is shown."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)
        if len(parts) == 1:
            yield from ((line, "") for line in re.split(r"(?<!\\)\n", self.text) if line)
            return
        assert not parts[0], f"{self.where}: output before the first command"
        for part in parts[1:]:
            command, shown = re.split(r"(?<!\\)\n", part, maxsplit=1)
            yield command, shown

    def file_name(self) -> str:
        names: list[str] = re.findall(rf"`([\w-]+\.{self.language})`", self.before)
        assert names, f"{self.where}: the text above names no .{self.language} file"
        return names[-1]


def blocks(document: Path) -> Iterator[Block]:
    text, before = document.read_text(encoding="utf-8"), 0
    assert text.count("```") % 2 == 0, f"{id_of(document)}: a block without an end"
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        line = text.count("\n", 0, match.start()) + 1
        between, before = text[before : match.start()], match.end()
        assert "```" not in between, f"{id_of(document)}: a block before line {line} that nobody sees"
        yield Block(f"{id_of(document)}:{line}", match[1], match[2], between)


def id_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def assert_shown(where: str, shown: str, printed: str) -> None:
    matches = doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS)
    assert matches, f"{where} shows\n{shown}\nbut what is printed is\n{printed}"


@dataclass
class Reader:
    """Somebody who does what a document says, in a directory and in one shell; a context manager.

    Attributes:
        folder: What a clone holds: the examples, a spec and the client in C, and the environment that ``make`` made.
        commands: What that environment has in place of its own ``uldp`` and ``python``.
    """

    folder: Path
    commands: Path
    _shell: subprocess.Popen[str] = field(init=False, repr=False)

    def __enter__(self) -> Self:
        for name in ("examples", "clients/c"):
            shutil.copytree(ROOT / name, self.folder / name)
        shutil.copy(ROOT / "clients" / "places.yaml", self.folder / "clients")
        self._make_environment()
        elsewhere = [path for path in os.get_exec_path() if not Path(path, "uldp").exists()]
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-uo", "pipefail"],
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name not in OF_AN_ENVIRONMENT}
            | {"PATH": os.pathsep.join(elsewhere)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that a command that hangs ends with its shell
        )
        return self

    def _make_environment(self) -> None:
        """Make what ``make`` makes: the environment of the tests, with commands that start at once."""
        there, here = Path(sys.prefix), self.folder / ".venv"
        (here / "bin").mkdir(parents=True)
        activate = (there / "bin" / "activate").read_text(encoding="utf-8").replace(str(there), str(here))
        (here / "bin" / "activate").write_text(activate, encoding="utf-8")
        for path in (*self.commands.iterdir(), *(there / "bin").iterdir()):
            if not (command := here / "bin" / path.name).exists():
                command.symlink_to(path)
        for path in there.iterdir():
            if path.name != "bin":
                (here / path.name).symlink_to(path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
        self._shell.communicate()

    def _kill(self) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)

    def run(self, where: str, command: str, *, fails: bool = False) -> str:
        """Run a command, and return what it prints; errors too if it is to fail."""
        out, err = self.folder / ".out", self.folder / ".err"
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command}\n}} > '{out}' 2> '{err}' < /dev/null; echo $?\n")
        self._shell.stdin.flush()
        too_long = threading.Timer(HANGS_AFTER_SECONDS, self._kill)
        too_long.start()
        status = self._shell.stdout.readline().strip()
        too_long.cancel()
        printed, errors = out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")
        assert status, f"{where}: it hangs, or has ended the shell\n{printed}{errors}"
        assert (status != "0") == fails, f"{where}: exit code {status}\n{printed}{errors}"
        return printed + errors if fails else printed

    def type_in(self, block: Block) -> None:
        for command, shown in block.commands():
            if command.startswith(ELSEWHERE):
                continue
            fails = re.search("^error: ", shown, flags=re.MULTILINE) is not None
            printed = self.run(f"{block.where}: {command}", command, fails=fails)
            if shown:
                assert_shown(block.where, shown, printed)

    def read(self, document: Path) -> None:
        if document.parent != ROOT:
            self.run(id_of(document), ACTIVATION)
        printed = ""
        for block in blocks(document):
            match block.language:
                case "console" | "bash":
                    self.type_in(block)
                case "python":
                    (self.folder / "program.py").write_text(block.text, encoding="utf-8")
                    printed = self.run(block.where, "python program.py")
                    assert_shown(block.where, "", (self.folder / ".err").read_text(encoding="utf-8"))
                case "text":
                    assert_shown(block.where, block.text, printed)
                case "yaml" | "csv" | "toml" | "c":
                    (self.folder / block.file_name()).write_text(block.text, encoding="utf-8")
                case language:
                    assert not language, f"{block.where}: nobody checks a block of {language}"


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=id_of)
def test_what_is_shown_is_what_happens(document: Path, warm: Path, tmp_path: Path) -> None:
    with Reader(tmp_path, warm) as reader:
        reader.read(document)


def test_a_reader_of_the_readme_has_no_environment_before_it_says_how(warm: Path, tmp_path: Path) -> None:
    assert all(ACTIVATION in (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/index.md"))
    with Reader(tmp_path, warm) as reader:
        with pytest.raises(AssertionError, match="exit code 127"):
            reader.run("no activation", "uldp --version")
        reader.run("activation", ACTIVATION)
        assert reader.run("after it", "uldp --version").startswith("uldp, version ")


@pytest.mark.parametrize("document", DOCUMENTS, ids=id_of)
def test_commands_options_and_files_that_are_named_exist(document: Path) -> None:
    # Blocks without a language have other programs' options too; where they can be run, tests/cluster does.
    text = re.sub(
        r"^```(\w*)\n.*?^```$",
        lambda block: block[0] if block[1] else "",
        document.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    commands = (cli, *cli.commands.values())
    options = {name for command in commands for option in command.params for name in option.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*(?![\w-])", text)) <= options | OTHER_OPTIONS
    assert set(re.findall(r"(?:^\$ |`)uldp ([a-z][a-z-]*)", text, flags=re.MULTILINE)) <= cli.commands.keys()
    files = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+)`", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    for name in set(re.findall(r"`(uldp(?:\.\w+)+)", text)) - {families.GROUP, kinds.GROUP, schemes.GROUP}:
        assert pkgutil.resolve_name(name), name


def anchors(page: Path) -> set[str]:
    """What a link may name in a page: its headings in lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), anchor


def table(document: str, first: str) -> dict[str, list[str]]:
    """The table whose first column has that heading: its rows by their first cell, without back-ticks."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    (rows,) = re.findall(rf"^\| {first} \|.*\n\| ---.*\n((?:\|.*\n)+)", text, flags=re.MULTILINE)
    split = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows.splitlines()]
    cells = [[cell.strip().replace(r"\|", "|") for cell in row] for row in split]
    return {name.strip("`"): rest for name, *rest in cells}


def test_every_reason_for_rejection_has_its_meaning_and_a_remedy() -> None:
    reasons = table("rejected.md", "Reason")
    assert {reason: meaning for reason, (meaning, _) in reasons.items()} == MEANING
    assert all(remedy for _, remedy in reasons.values())


def test_every_flag_has_its_meaning_and_a_remedy() -> None:
    raised = table("flags.md", "Flag")
    assert {flag: meaning for flag, (meaning, _) in raised.items()} == flags.MEANING
    assert all(remedy for _, remedy in raised.values())


def test_every_field_of_an_estimate_is_explained() -> None:
    fields, fields_of_table = (
        sorted(name for cell in table("estimates.md", first) for name in re.findall(r"\w+", cell))
        for first in ("Field", "Field of a table")
    )
    schema = {field["name"]: field for field in load_schema("estimate")["fields"]}
    assert fields == sorted([*schema, "distribution", "stderr", "tags", "bound", "counts"])
    assert fields_of_table == sorted(field["name"] for field in schema["tables"]["type"]["items"]["fields"])


def test_every_estimator_is_explained() -> None:
    assert tuple(table("estimates/estimators.md", "Estimator")) == get_args(EstimatorName)


def test_every_counter_is_explained() -> None:
    assert tuple(table("monitoring.md", "Counter")) == get_args(CounterName)


def test_every_metric_is_named() -> None:
    from uldp.pipelines.live.exposition import METRICS

    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    exposed = {f"{name}_total" if counts else name for name, (counts, _, _) in METRICS.items()}
    assert set(re.findall(r"\buldp_[a-z_]+", page)) == exposed


def test_no_other_mechanism_is_explained() -> None:
    names = [name for cell in table("client/obfuscate.md", "Mechanism") for name in re.findall(r"[\w-]+", cell)]
    assert names == sorted({*names} & {*mechanism_names()}, key=names.index)


def test_the_bytes_of_the_worked_example_are_those_of_a_report() -> None:
    fields = table("client/bytes.md", "Bytes")
    assert bytes.fromhex("".join(fields)) == Report("places", 1, bytes(range(16)), 1_767_603_600_000, 5).encode()


def test_the_bytes_of_the_worked_example_are_those_of_a_batch() -> None:
    times, symbols = (1_767_603_600_000).to_bytes(8, "little") * 2, bytes([5, 0, 0, 0, 2, 0, 0, 0])
    batch = ReportBatch("places", 1, bytes(range(32)), times, symbols=symbols)
    assert bytes.fromhex("".join(table("client/bytes.md", "Hex"))) == batch.encode()
