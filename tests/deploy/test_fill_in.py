"""What a release fills in: each package says who publishes it, and an open variable changes nothing."""

import json
import re
import tomllib
from xml.etree import ElementTree

import pytest
import yaml

from deploy.fill_in import FILES, Publisher, citation, package_json, pom, pyproject, readme
from tests.downloads import ROOT

URL = "https://forge.example/them/uldp-stream"
HOSTILE = 'O"Hara & {Söns} 🜁: #1 \\ '
SET = {"AUTHORS": f"Ada Lovelace <ada@example.org>; {HOSTILE}", "URL": URL, "GROUP": "org.example"}
BY = Publisher.of(SET)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_variables_are_read_and_open_ones_are_named() -> None:
    assert BY.authors == (("Ada Lovelace", "ada@example.org"), (HOSTILE.strip(), ""))
    assert BY.open() == []
    assert Publisher.of({"URL": URL, "AUTHORS": " ; "}).open() == ["AUTHORS", "GROUP"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AUTHORS", "Ada\nLovelace"),
        ("URL", "http://forge.example/x"),
        ("GROUP", "example"),
        ("GROUP", "org.example</groupId>"),
    ],
)
def test_a_value_of_another_form_is_refused_by_the_name_of_its_variable(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{variable} (is|has) .*; write "):
        Publisher.of({variable: value})


def test_the_python_package_says_who_publishes_it() -> None:
    project = tomllib.loads(pyproject(text("pyproject.toml"), BY))["project"]
    assert project["authors"] == [{"name": "Ada Lovelace", "email": "ada@example.org"}, {"name": HOSTILE.strip()}]
    assert project["urls"] == {"Repository": URL}


def test_the_package_for_npm_says_who_publishes_it() -> None:
    package = json.loads(package_json(text("clients/typescript/package.json"), BY))
    assert package["author"] == "Ada Lovelace <ada@example.org>"
    assert package["contributors"] == [HOSTILE.strip()]
    assert (package["homepage"], package["repository"]["url"]) == (URL, f"git+{URL}.git")


def test_the_pom_has_what_maven_central_asks_for() -> None:
    root = ElementTree.fromstring(pom(text("clients/kotlin/pom.xml"), BY))
    asked = ("name", "description", "url", "licenses/{*}license/{*}url", "scm/{*}url", "scm/{*}connection")
    assert all(root.findtext(f"{{*}}{each}") for each in asked)
    assert root.findtext("{*}groupId") == "org.example"
    assert [each.findtext("{*}name") for each in root.iterfind(".//{*}developer")] == ["Ada Lovelace", HOSTILE.strip()]


def test_the_citation_says_who_publishes_it() -> None:
    cited = yaml.safe_load(citation(text("CITATION.cff"), BY))
    assert cited["authors"] == [{"name": "Ada Lovelace"}, {"name": HOSTILE.strip()}]
    assert cited["repository-code"] == URL


@pytest.mark.parametrize("name", FILES)
def test_what_is_open_stays_as_it_is(name: str) -> None:
    before, after = text(name), FILES[name](text(name), Publisher())
    assert json.loads(before) == json.loads(after) if name.endswith(".json") else before == after


def test_nobody_can_own_the_group_that_is_not_filled_in() -> None:
    root = ElementTree.fromstring(text("clients/kotlin/pom.xml"))
    assert (root.findtext("{*}groupId") or "").split(".")[0] == "invalid"  # RFC 2606


def test_a_file_that_has_changed_so_that_nothing_is_found_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has no '- name: The authors of uldp-stream', or more than one"):
        citation("license: MIT\n", BY)


def test_no_link_of_the_readme_is_relative_on_another_page() -> None:
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", readme(text("README.md"), BY))
    assert len(links) > 20
    for picture, target in links:
        assert target.startswith(f"{URL}/{'raw' if picture else 'blob'}/HEAD/")
        assert (ROOT / target.partition("/HEAD/")[2].partition("#")[0]).exists()
