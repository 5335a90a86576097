"""The notebooks run from the first cell to the last, without Beam, and show what their text says."""

import shutil
from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.docs.notebook import NOTEBOOK, tutorial
from tests.docs.test_documents import ROOT

NOTEBOOKS = sorted(set((ROOT / "examples").rglob("*.ipynb")) - {NOTEBOOK})
#: Runs after the last cell, where the modules are that the cells have imported.
WITHOUT_BEAM = "import sys\nassert not any(name.startswith('apache_beam') for name in sys.modules)"


def run(path: Path, tmp_path: Path) -> str:
    """What the cells of a notebook print, in a new kernel."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "clear the outputs: the test runs the cells"
    notebook.cells.append(nbformat.v4.new_code_cell(WITHOUT_BEAM))
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "".join(output["text"] for output in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    printed = run(path, tmp_path)
    assert "not_avro starts with 6e6f, not c301\n" in printed
    never = next(line for line in printed.splitlines() if line.startswith("never"))
    low, high = (float(end) for end in never.partition("[")[2].rstrip("]").split(","))
    assert low < 0.5 < high
    assert "duplicate=1" in printed


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


def test_the_tutorial_is_a_notebook_too() -> None:
    written = nbformat.read(NOTEBOOK, as_version=4)
    assert written == tutorial(), "the page has changed; write the notebook anew: python -m tests.docs.notebook"


@pytest.mark.nightly
def test_the_notebook_of_the_tutorial_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "clients" / "c", tmp_path / "clients" / "c")
    (tmp_path / "pyproject.toml").touch()
    folder = tmp_path / "examples" / "notebook"
    folder.mkdir(parents=True)
    notebook = tutorial()
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    (mended,) = (cell for cell in notebook.cells if "--to mended" in cell.source)
    printed = "".join(output.get("text", "") for output in mended.outputs)
    assert "5,000 received = 5,000 counted" in printed
    assert any("text/html" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))
