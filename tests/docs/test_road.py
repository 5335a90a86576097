"""The road of a newcomer: the README, and the pages that docs/index.md names for somebody with one survey."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.test_documents import ROOT, blocks
from uldp.schemas.specs.families import mechanism_names

README = ROOT / "README.md"
INDEX = ROOT / "docs" / "index.md"
#: What somebody with one survey by ``urr`` reads from the README to production, at the most.
WORDS = 5_000
PICTURE = ROOT / "docs" / "images" / "gain.svg"


def path() -> list[Path]:
    """The pages between the two comments of docs/index.md, in their order."""
    found = re.search("<!-- the path of a survey -->(.*)<!-- the end of the path -->", INDEX.read_text(), re.DOTALL)
    assert found
    return [(INDEX.parent / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", found[1])]


def test_the_path_of_one_survey_is_short() -> None:
    words = {str(page.relative_to(ROOT)): len(page.read_text(encoding="utf-8").split()) for page in path()}
    total = sum(words.values())
    assert total <= WORDS, f"the pages of docs/index.md have {total:,} words, {total - WORDS:,} too many: {words}"


def test_the_path_goes_from_the_readme_to_estimates() -> None:
    first, *_, last = path()
    assert (first, last) == (README, ROOT / "docs" / "analyst.md")
    assert {"tutorial.md", "spec.md", "client.md", "collecting.md"} <= {page.name for page in path()}


def test_no_page_of_the_path_writes_to_a_folder_or_a_file_of_another() -> None:
    """Somebody reads one page after the other in one clone; most commands refuse a folder that is there."""
    written: dict[str, str] = {}
    for page in path():
        text = "\n".join(block.text for block in blocks(page) if block.language in {"console", "bash"})
        for target in sorted(set(re.findall(r"--(?:to|out) (\S+)", text))):
            assert target not in written, f"{page.name} writes to {target}, and so does {written[target]}"
            written[target] = page.name
    assert len(written) > 10


def test_the_readme_shows_its_first_command_and_a_picture_at_once() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    first = next(blocks(README))
    assert int(first.where.rpartition(":")[2]) < 20
    assert "docs/images/gain.svg" in "\n".join(lines[:40])
    assert [line for line in lines if re.match(r"10\. ", line)]
    assert not [line for line in lines if re.match(r"11\. ", line)]


def test_the_table_of_the_readme_names_mechanisms_that_exist() -> None:
    lines = re.findall(r"\{name: ([a-z-]+), epsilon: \d\}", README.read_text(encoding="utf-8"))
    assert len(lines) >= 8
    assert set(lines) <= set(mechanism_names())


@pytest.mark.slow
def test_the_picture_is_what_its_command_draws(tmp_path: Path) -> None:
    drawn = tmp_path / PICTURE.name
    subprocess.run([sys.executable, PICTURE.with_suffix(".py"), drawn], check=True)
    kept, made = (ElementTree.parse(file).getroot() for file in (PICTURE, drawn))
    assert [(each.tag, each.text) for each in kept.iter()] == [(each.tag, each.text) for each in made.iter()]
    assert PICTURE.stat().st_size < 100_000


@pytest.mark.slow
def test_the_picture_shows_what_the_readme_says_of_it() -> None:
    """The error of ULDP and PUM is about a quarter of that of LDP for epsilon up to 1."""
    script = runpy.run_path(str(PICTURE.with_suffix(".py")))
    for epsilon in (each for each in script["EPSILONS"] if each <= 1):
        ldp, uldp = (
            min(script["error"](keys, epsilon) for name, (keys, *_) in script["LINES"].items() if name.startswith(kind))
            for kind in ("LDP", "ULDP")
        )
        assert 0.15 < uldp / ldp < 0.3
