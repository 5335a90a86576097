"""What a connector of this project has beside its folder: each missing piece is one sentence of one test."""

from pathlib import Path

from uldp.transforms.io.schemes import connectors

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "transforms" / "uldp" / "transforms" / "io"
EXPORT = ROOT / "docs" / "export.md"


def own() -> dict[str, Path]:
    """The folder of each connector of this project, by its scheme; a module has no hyphen."""
    ours = (name for name, each in connectors().items() if each.value.startswith("uldp.transforms.io."))
    return {name: FOLDER / name.replace("-", "_") for name in ours}


def folders() -> set[str]:
    return {path.parent.name for path in FOLDER.glob("*/endpoint.py")}


def texts(folder: Path, pattern: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob(pattern))


def missing() -> list[str]:
    """Say which pieces of which connectors are not there."""
    tests, export = texts(ROOT / "tests", "*.py"), EXPORT.read_text(encoding="utf-8")
    return [
        f"{name}: {piece}"
        for name, folder in own().items()
        for piece, there in (
            ("write transforms/io/NAME/endpoint.py, with parse", (folder / "endpoint.py").is_file()),
            ("say in the table of docs/export.md where its rows go", f"`{name}:" in export),
            ("run a job with its URI in a test", f'"{name}:' in tests),
        )
        if not there
    ]


def test_each_connector_has_all_of_its_pieces() -> None:
    assert "\n".join(missing()) == ""


def test_each_folder_of_a_connector_is_known() -> None:
    assert folders() == {folder.name for folder in own().values()}, (
        "name the connector in _OWN of transforms/io/schemes.py"
    )
