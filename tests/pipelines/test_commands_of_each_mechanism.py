"""Each mechanism that a spec can name through the commands of an operator, from check to show."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests import build
from tests.mechanisms.protocols import ZONES, specs
from tests.pipelines.command import Run
from uldp.pipelines.results.read import newest, read_statistics
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.variable import Variable

pytestmark = pytest.mark.slow

USERS = 500
SPECS = specs()
#: The first spec of each mechanism, and its first with tags.
FIRST = {(keys["mechanism"]["name"], "tags" in keys): name for name, keys in reversed(SPECS.items())}.values()


def truth(spec: CollectionSpec) -> str:
    """Two values of each variable, the second behind a tag, if there is one."""
    columns: dict[str, tuple[str, str]] = {}
    for name, variable in spec.variables.items():
        columns[name or "value"] = values(variable)
        if variable.tags or (not name and variable.domain.kind == "values"):
            columns[f"{name}.tag" if name else "tag"] = ("", variable.tags[0].name if variable.tags else "")
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join([*columns, "weight"]), *(",".join([*row, "1"]) for row in rows)]) + "\n"


def values(variable: Variable) -> tuple[str, str]:
    if variable.domain.number is not None:
        return "0.5", "7.25"
    return ("kiosk", "nobody") if variable.domain.strings is not None else ("0", str(variable.size - 1))


def saved(folder: Path, keys: dict[str, Any]) -> Path:
    path = folder / "spec.yaml"
    ours = {"limits": {"min_reports": 1}, "window": {"size": "1h", "allowed_lateness": "1h"}}
    text = yaml.safe_dump(build.MINIMAL | ours | keys)
    shutil.copy(ZONES, folder)  # a spec opens no file of another folder
    path.write_text(text.replace(ZONES, Path(ZONES).name), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", SPECS)
def test_it_is_checked(name: str, uldp: Run, tmp_path: Path) -> None:
    code, out, err = uldp("check", saved(tmp_path, SPECS[name]))
    assert (code, err) == (0, "")
    assert "errors " in out
    assert "nan" not in out.split()


@pytest.mark.parametrize("name", FIRST)
def test_it_is_simulated_counted_and_shown(name: str, uldp: Run, tmp_path: Path) -> None:
    path, rows = saved(tmp_path, SPECS[name]), tmp_path / "truth.csv"
    rows.write_text(truth(CollectionSpec.load(path)), encoding="utf-8")
    options = ("--truth", rows, "--users", USERS, "--duration", "1h", "--batch-size", 100, "--to", tmp_path / "sent")
    code, _, err = uldp("simulate", path, *options)
    assert code == 0, err
    counted = {}
    for job in ("backfill", "stream"):
        out = tmp_path / job
        code, _, err = uldp(job, "--spec", path, "--from", tmp_path / "sent", "--to", out)
        assert code == 0, err
        (pane,) = newest(read_statistics(out))
        assert pane.accounting.counted == USERS
        counted[job] = np.asarray(pane.cells)
        code, shown, err = uldp("show", out)
        assert code == 0, err
        assert f"{USERS} received = {USERS} counted" in shown
    assert counted["backfill"].tolist() == counted["stream"].tolist()
