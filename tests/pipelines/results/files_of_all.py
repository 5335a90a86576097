"""Results in files of panes of several collections, and the same in a file for each pane."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests import build
from tests.build import HOUR, START
from tests.pane_files import save_panes
from tests.pipelines.results.samples import folder_of
from uldp.pipelines.results.folder import ResultsFolder
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.folders import COUNTS, FEW

NAMES = ("c", "d", "e-2")
RR = {"name": "rr", "epsilon": 1.0}
SPECS = {(name, 1): build.spec(collection=name, domain={"size": 2}, mechanism=RR) for name in NAMES}


def pane(name: str, hour: int, revision: int = 1, kind: str = "on_time", n: int = 0, **fields: Any) -> Statistic:
    cells = [n or revision + 1, 0]
    digest = SPECS[name, 1].device_digest
    return build.pane(cells, kind, revision, start=START + hour * HOUR, key=(name, 1), device_digest=digest, **fields)


def estimate(support: Statistic, estimator: str = "mle") -> Estimate:
    return build.estimate(support, [1.0, 0.0], [0.1, 0.1], estimator=estimator)


def save_own(out: Path, panes: Iterable[Statistic]) -> None:
    """Save a file for each pane, and for its estimate by each estimator."""
    for each in panes:
        save_of_all(out, [each])


def save_of_all(out: Path, panes: Sequence[Statistic]) -> dict[str, Path]:
    """Save a file of all panes of each kind; returns them by kind and estimator."""
    kinds: dict[str, list[PaneHeader]] = {
        COUNTS: [PaneHeader(**each.header()) if each.apart else each for each in panes],
        FEW: [each for each in panes if each.apart],
    }
    paths = {kind: save_panes(out, kind, of) for kind, of in kinds.items() if of}
    for estimator in ("mle", "em"):
        if of := [estimate(each, estimator) for each in panes if not each.apart]:
            paths[estimator] = save_panes(out, "estimates", of)
    return paths


def results(out: Path) -> Path:
    folder_of(out, specs=SPECS)
    (out / "job.json").write_text("{}")
    return out


def everything(out: Path) -> list[str]:
    """All panes, in their order."""
    folder = ResultsFolder(out, private=out)
    return sorted(map(repr, (*folder.panes(), *folder.estimates(), *folder.statistics())))
