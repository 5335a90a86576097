"""The tutorial as a notebook, from its page: ``python -m tests.docs.notebook`` writes it."""

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat

from tests.docs.test_documents import ROOT, Block, blocks

PAGE = ROOT / "docs" / "tutorial.md"
NOTEBOOK = ROOT / "examples" / "notebook" / "tutorial.ipynb"
#: In place of an activation in a shell.
ENVIRONMENT = """import os
import sys

while not os.path.exists("pyproject.toml"):  # the root of the clone
    os.chdir("..")
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])"""
#: Behind a cell that writes a page, which no relative address reaches from every folder.
SHOWN = """from html import escape

from IPython.display import HTML

with open("{page}", encoding="utf-8") as page:
    frame = HTML(f'<iframe srcdoc="{{escape(page.read())}}" width="100%" height="700"></iframe>')
frame"""


def code(block: Block) -> Iterator[str]:
    """The cells that do what a block says."""
    commands = [command for command, _ in block.commands()] if block.language == "console" else []
    match block.language:
        case "console" if commands == [". .venv/bin/activate"]:
            yield ENVIRONMENT
        case "console":
            # A cell ends when nothing holds its outputs any more, and the next one has a shell of its own.
            shell = "\n".join(commands).replace("$!", "$(cat background.pid)")
            yield "%%bash\nset -e\n" + re.sub(r">(\S+\.log) &", r">\1 2>&1 & echo $! >background.pid", shell)
            yield from (SHOWN.format(page=page) for page in re.findall(r"uldp report .*--out (\S+)", block.text))
        case "python":
            yield block.text.rstrip()
        case _:
            yield f"%%writefile {block.file_name()}\n{block.text.rstrip()}"


def text(page: str) -> str:
    """What stands between blocks, with links as they are from the folder of the notebook."""

    def link(found: re.Match[str]) -> str:
        target = Path("docs", found[1]).as_posix()
        parts: list[str] = []
        for part in target.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        return f"](../../{'/'.join(parts)})"

    return re.sub(r"\]\((?!https?:|#)([^)]+)\)", link, page.strip())


def tutorial() -> nbformat.NotebookNode:
    """The notebook, without outputs."""
    cells = []
    for block in blocks(PAGE):
        cells.append(nbformat.v4.new_markdown_cell(text(block.before)))
        cells += [nbformat.v4.new_code_cell(cell) for cell in code(block)]
    cells.append(nbformat.v4.new_markdown_cell(text(PAGE.read_text(encoding="utf-8").rpartition("```\n")[2])))
    cells = [cell for cell in cells if cell.source]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook: nbformat.NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    return notebook


if __name__ == "__main__":
    nbformat.write(tutorial(), NOTEBOOK)
