"""Where an extra is installed from: where the project came from, which an index need not know."""

import json
from importlib import metadata

import pytest

from uldp.schemas.extras import install


class Installed:
    def __init__(self, origin: object) -> None:
        self._origin = None if origin is None else json.dumps(origin)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._origin


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (None, ""),
        ({"url": "file:///clone", "dir_info": {"editable": True}}, " @ file:///clone"),
        ({"url": "file:///a.whl", "archive_info": {}}, " @ file:///a.whl"),
        ({"url": "https://forge/project", "vcs_info": {"vcs": "git"}}, " @ git+https://forge/project"),
    ],
)
def test_an_extra_comes_from_where_the_project_came(
    origin: object, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(origin))
    assert install("beam", "serve") == f"pip install 'uldp-stream[beam,serve]{source}'"


def test_what_is_not_installed_is_named_alone() -> None:
    assert install("x", of="no-such-distribution") == "pip install 'no-such-distribution[x]'"
