"""The registry of families: what is imported when, names that clash, how errors come out, where extras are from."""

import json
import subprocess
import sys
from importlib import metadata
from importlib.metadata import EntryPoint
from typing import Literal

import pytest
from pydantic import ByteSize

from tests import build
from uldp.schemas import extras
from uldp.schemas.extras import install
from uldp.schemas.specs import any_mechanism, mechanism_family
from uldp.schemas.specs.families import registered
from uldp.schemas.specs.mechanism_family import PrivateSpec
from uldp.schemas.specs.specfile import SpecError

READS_ONE = """
import sys
from uldp.schemas import CollectionSpec
CollectionSpec.parse({"collection": "c", "version": 1, "domain": {"size": 3}, "window": {"size": "1h"},
                      "mechanism": {"name": "rr", "epsilon": 1.0}})
print(*sorted(name for name in sys.modules if name.startswith("uldp.mechanisms.families.") and name.endswith(".spec")))
"""


def test_a_spec_imports_the_family_that_it_names_and_no_other() -> None:
    done = subprocess.run([sys.executable, "-c", READS_ONE], capture_output=True, text=True, check=True)
    assert done.stdout == "uldp.mechanisms.families.randomized_response.spec\n"


def test_two_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("rr", "other:RrSpec", "uldp.families")
    monkeypatch.setattr(extras, "entry_points", lambda group: [point])
    with pytest.raises(ValueError, match=r"other:RrSpec both have the name rr in uldp\.families; uninstall"):
        extras.with_packages("uldp.families", {"rr": "ours:RrSpec"})


class Sized(PrivateSpec):
    """A model with an error of a type that pydantic does not know."""

    title = "sized"

    name: Literal["sized"]
    room: ByteSize


def test_an_error_of_a_type_of_its_own_names_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {**registered(), "sized": EntryPoint("sized", f"{__name__}:Sized", "uldp.families")}
    for module in (any_mechanism, mechanism_family):
        monkeypatch.setattr(module, "registered", lambda: known)
        monkeypatch.setattr(module, "family", lambda name: Sized)
    with pytest.raises(SpecError, match=r"^spec: mechanism\.room: could not parse value and unit from byte string"):
        build.spec(mechanism={"name": "sized", "epsilon": 1.0, "room": "much"})


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
