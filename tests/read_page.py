"""A page as a browser would read it."""

from collections import Counter
from html.parser import HTMLParser


class Page(HTMLParser):
    """What a browser would make of the page: tags with their attributes, the text, and the script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = self.script = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self.text += " " * (tag in {"td", "th", "dt", "dd"})

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.script += data
        elif self.cdata_elem != "style":
            self.text += data

    def all(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]

    def count(self, tag: str) -> int:
        return Counter(name for name, _ in self.tags)[tag]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())
