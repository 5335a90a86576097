"""One module lists folders, so that no other decides in silence which files count."""

import ast

import pytest

from tests.test_layering import MODULES, id_of, parsed

LISTING = "transforms/uldp/transforms/io/listing.py"
#: Who else may list folders, and which.
EXCEPTIONS = {
    "transforms/uldp/transforms/io/local/begun.py": "the files of a local stream by their own names, to remove them",
    "transforms/uldp/transforms/io/local/stream.py": "the segments of a local stream, by their numbers",
}
#: What lists a folder, whatever it belongs to; and names that mean it in ``os`` alone.
_LIST, _OF_OS = {"glob", "rglob", "iglob", "iterdir", "listdir", "scandir"}, {"walk", "fwalk"}


def lists(node: ast.AST) -> bool:
    """Whether a node of a program lists a folder, or imports what does."""
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr=name):
            return name in _LIST | _OF_OS
        case ast.Attribute(attr=name):
            return name in _LIST
        case ast.ImportFrom(module="os" | "glob", names=names):
            return any(alias.name in _LIST | _OF_OS for alias in names)
    return False


def listings(tree: ast.AST) -> list[int]:
    """The lines of a program in which it does so."""
    return sorted({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr) and lists(node)})


def test_one_module_lists_folders() -> None:
    found = {id_of(path) for path in MODULES if listings(parsed(path))}
    assert found == {LISTING, *EXCEPTIONS}


@pytest.mark.parametrize(
    "program",
    [
        "sorted(Path(x).glob('*'))",
        "path.iterdir()",
        "os.listdir(x)",
        "list(map(os.scandir, x))",
        "from os import walk",
        "from glob import iglob",
        "import glob; glob.glob('*')",
    ],
)
def test_each_way_to_list_a_folder_is_seen(program: str) -> None:
    assert listings(ast.parse(program)) == [1]
