"""Each mechanism that a spec can name through the commands of an operator, from check to show."""

import shutil
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests import build
from tests.mechanisms.protocols import ZONES, specs
from tests.pipelines.command import Run, run
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.records import Message
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.kinds import Number, Ranking, Strings
from uldp.schemas.specs.variable import Variable
from uldp.transforms.io.local.stream import LocalStream
from uldp.transforms.io.message_files import read_messages

pytestmark = pytest.mark.slow

USERS = 500
SPECS = specs()
#: The first spec of each mechanism, and its first with tags.
_FIRST = {(keys["mechanism"]["name"], "tags" in keys): name for name, keys in reversed(SPECS.items())}
FIRST = list(_FIRST.values())


def truth(spec: CollectionSpec) -> str:
    """Two values of each variable, the second behind a tag, if there is one."""
    columns: dict[str, tuple[str, str]] = {}
    for name, variable in spec.variables.items():
        columns[name or variable.kind.columns[0]] = values(variable)
        if variable.tags or (not name and variable.kind.listed):
            columns[f"{name}.tag" if name else "tag"] = ("", variable.tags[0].name if variable.tags else "")
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join([*columns, "weight"]), *(",".join([*row, "1"]) for row in rows)]) + "\n"


def values(variable: Variable) -> tuple[str, str]:
    if isinstance(variable.kind, Number):
        return "0.5", "7.25"
    if isinstance(variable.kind, Ranking):
        return ">".join(variable.kind.of), ">".join(reversed(variable.kind.of))
    return ("kiosk", "nobody") if isinstance(variable.kind, Strings) else ("0", str(variable.size - 1))


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


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What ``backfill`` and ``stream`` wrote of one stream that has reports of each mechanism, by the command."""
    folder = tmp_path_factory.mktemp("each")
    messages: list[Message] = []
    for index, name in enumerate(FIRST):
        (part := folder / f"{index}").mkdir()
        path, rows = saved(part, SPECS[name] | {"collection": f"c{index}"}), part / "truth.csv"
        rows.write_text(truth(CollectionSpec.load(path)), encoding="utf-8")
        options = ("--truth", rows, "--users", USERS, "--duration", "1h", "--batch-size", 100, "--to", part / "sent")
        run("simulate", path, *options)
        for segment in LocalStream.open(part / "sent").segments():
            messages += read_messages(segment)
    sent = LocalStream.create(folder / "sent", simulated_clock=True)
    sent.append(sorted(messages, key=attrgetter("publish_time")))
    sent.close()
    specs = [option for index in range(len(FIRST)) for option in ("--spec", folder / f"{index}" / "spec.yaml")]
    for job in ("backfill", "stream"):
        run(job, *specs, "--from", folder / "sent", "--to", folder / job)
    return {job: folder / job for job in ("backfill", "stream")}


@pytest.mark.xdist_group("each mechanism")  # one process makes the results
@pytest.mark.parametrize("name", FIRST)
def test_it_is_counted_and_shown(name: str, results: dict[str, Path], uldp: Run) -> None:
    collection, counted = f"c{FIRST.index(name)}", {}
    for job, out in results.items():
        (pane,) = (pane for pane in newest(ResultsFolder(out).statistics()) if pane.collection == collection)
        assert pane.accounting.counted == USERS
        counted[job] = np.asarray(pane.cells)
        code, shown, err = uldp("show", out, "--collection", collection)
        assert code == 0, err
        assert f"{USERS} received = {USERS} counted" in shown
    assert counted["backfill"].tolist() == counted["stream"].tolist()
