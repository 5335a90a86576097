"""Fill in who publishes a release: python deploy/fill_in.py FOLDER, of a clone that is not committed.

``AUTHORS`` is names with or without an address, ``Ada Lovelace <ada@example.org>; Alan Turing``. ``URL`` is the page of
the repository, and ``GROUP`` the group of the jar in Maven Central. A variable that is not set stays open.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Publisher:
    """Whoever publishes a release.

    Attributes:
        authors: Names, each with an address or the empty text.
        url: The page of the repository; empty if it is open.
        group: The group of the jar; empty if it is open.
    """

    authors: tuple[tuple[str, str], ...] = ()
    url: str = ""
    group: str = ""

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> "Publisher":
        """Read variables of the environment.

        Raises:
            ValueError: if a value is not of its form; the message names the variable.
        """
        authors = []
        for author in filter(None, map(str.strip, variables.get("AUTHORS", "").split(";"))):
            found = re.fullmatch(r"([^<>\x00-\x1f\x7f]*[^<>\s\x00-\x1f\x7f])(?:\s*<([^<>\s@]+@[^<>\s@]+)>)?", author)
            if found is None:
                raise ValueError(
                    f"AUTHORS has {author!r}; write names as 'Ada Lovelace <ada@example.org>; Alan Turing'"
                )
            authors.append((found[1], found[2] or ""))
        url, group = variables.get("URL", ""), variables.get("GROUP", "")
        if url and not re.fullmatch(r"https://[\w.-]+(/[\w./~-]*[\w~-])?", url, flags=re.ASCII):
            raise ValueError(f"URL is {url!r}; write the page of the repository, as https://HOST/OWNER/uldp-stream")
        if group and not re.fullmatch(r"[a-z]\w*(\.[a-z][\w-]*)+", group, flags=re.ASCII):
            raise ValueError(f"GROUP is {group!r}; write a domain backwards that is yours, as org.example")
        return cls(tuple(authors), url, group)

    def open(self) -> list[str]:
        """Return the variables that are not set."""
        return [name for name in ("AUTHORS", "URL", "GROUP") if not getattr(self, name.lower())]


def _once(text: str, old: str, new: str) -> str:
    """Replace what stands once in a text."""
    if text.count(old) != 1:
        raise ValueError(f"a file has no {old.strip()!r}, or more than one; deploy/fill_in.py has to write there")
    return text.replace(old, new)


def pyproject(text: str, by: Publisher) -> str:
    """Return ``pyproject.toml`` with authors and URLs."""
    people = [
        "{" + ", ".join(f"{key} = {_quoted(value)}" for key, value in (("name", name), ("email", mail)) if value) + "}"
        for name, mail in by.authors
    ]
    if people:
        text = _once(text, "\nclassifiers = [\n", f"\nauthors = [{', '.join(people)}]\nclassifiers = [\n")
    urls = f'\n[project.urls]\nRepository = "{by.url}"\n' if by.url else ""
    return _once(text, "\n[project.scripts]\n", f"{urls}\n[project.scripts]\n")


def package_json(text: str, by: Publisher) -> str:
    """Return ``package.json`` with authors and URLs."""
    package = json.loads(text)
    people = [f"{name} <{mail}>" if mail else name for name, mail in by.authors]
    if people:
        package |= {"author": people[0]} | ({"contributors": people[1:]} if people[1:] else {})
    if by.url:
        repository = {"type": "git", "url": f"git+{by.url}.git", "directory": "clients/typescript"}
        package |= {"homepage": by.url, "repository": repository}
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"


def pom(text: str, by: Publisher) -> str:
    """Return ``pom.xml`` with the group, developers and URLs."""
    people = "".join(
        f"    <developer><name>{escape(name)}</name>{f'<email>{escape(mail)}</email>' if mail else ''}</developer>\n"
        for name, mail in by.authors
    )
    lines = f"  <developers>\n{people}  </developers>\n" if people else ""
    if by.url:
        connection = f"<connection>scm:git:{by.url}.git</connection>"
        lines += f"  <url>{by.url}</url>\n  <scm>{connection}<url>{by.url}</url></scm>\n"
    text = _once(text, "<groupId>invalid.uldp</groupId>", f"<groupId>{by.group or 'invalid.uldp'}</groupId>")
    return _once(text, "\n  </licenses>\n", f"\n  </licenses>\n{lines}")


def citation(text: str, by: Publisher) -> str:
    """Return ``CITATION.cff`` with authors and the repository."""
    nobody = "  - name: The authors of uldp-stream\n"
    people = "".join(f"  - name: {_quoted(name)}\n" for name, _ in by.authors)
    url = f"repository-code: {by.url}\n" if by.url else ""
    return _once(_once(text, nobody, people or nobody), "\nlicense: Apache-2.0\n", f"\nlicense: Apache-2.0\n{url}")


def readme(text: str, by: Publisher) -> str:
    """Return ``README.md`` with links to the repository: on the page of an index, a relative one leads nowhere."""
    if not by.url:
        return text
    text = re.sub(r"(!\[[^\]]*\]\()(?!https:)", rf"\1{by.url}/raw/HEAD/", text)
    return re.sub(r"(?<!!)(\[[^\]]*\]\()(?!https:|#)", rf"\1{by.url}/blob/HEAD/", text)


def _quoted(value: str) -> str:
    """Return a string as TOML, JSON and YAML write it."""
    return json.dumps(value, ensure_ascii=False)


#: Which function fills in a file.
FILES = {
    "pyproject.toml": pyproject,
    "clients/typescript/package.json": package_json,
    "clients/kotlin/pom.xml": pom,
    "CITATION.cff": citation,
    "README.md": readme,
}


def main(folder: Path) -> None:
    """Fill in the files of a clone, and print the variables that stay open, one on a line."""
    try:
        by = Publisher.of(os.environ)
        for name, filled in FILES.items():
            path = folder / name
            path.write_text(filled(path.read_text(encoding="utf-8"), by), encoding="utf-8")
    except ValueError as error:
        sys.exit(f"error: {error}")
    sys.stdout.write("".join(f"{name}\n" for name in by.open()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
