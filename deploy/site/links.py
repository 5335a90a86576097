"""A hook of MkDocs: links out of the folder of pages become names of files, because a site has no such files."""

import re
from typing import Any

_OUT = re.compile(r"(!?)\[([^\]]+)\]\(((?:\.\./)+[^)\s]+|decisions)\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the text of a page with links to pages alone."""
    depth = page.file.src_uri.count("/")

    def shown(found: re.Match[str]) -> str:
        picture, text, target = found.groups()
        inside = target.count("../") <= depth and target != "decisions"
        return found[0] if inside or picture else f"{text} (`{target.replace('../', '')}`)"

    return _OUT.sub(shown, markdown)
