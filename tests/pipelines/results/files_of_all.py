"""Results in files of panes of several collections, and the same in a file for each pane."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests import build
from tests.build import HOUR, START
from tests.pipelines.results.samples import folder_of
from uldp.schemas.estimate import Estimate
from uldp.schemas.pane import PaneHeader
from uldp.schemas.statistic import Statistic, counts_to_avro
from uldp.transforms.io.durable_files import encode_record, write_file
from uldp.transforms.io.folders import COUNTS, FEW
from uldp.transforms.io.results import estimate_file, file_of_all, statistic_file
from uldp.transforms.io.window_index import place_of

NAMES = ("c", "d", "e-2")
RR = {"name": "rr", "epsilon": 1.0}
SPECS = {(name, 1): build.spec(collection=name, domain={"size": 2}, mechanism=RR) for name in NAMES}


def pane(name: str, hour: int, revision: int = 1, kind: str = "on_time", n: int = 0, **fields: Any) -> Statistic:
    cells = [n or revision + 1, 0]
    digest = SPECS[name, 1].device_digest
    return build.pane(cells, kind, revision, start=START + hour * HOUR, key=(name, 1), device_digest=digest, **fields)


def estimate(support: Statistic, estimator: str = "mle") -> Estimate:
    return build.estimate(support, [1.0, 0.0], [0.1, 0.1], estimator=estimator)


def save(out: Path, named: tuple[str, bytes], *, private: bool = False) -> Path:
    write_file(str(out / named[0]), named[1], private=private)
    return out / named[0]


def save_own(out: Path, panes: Iterable[Statistic]) -> None:
    """Save a file for each pane, and for its estimate by each estimator."""
    for each in panes:
        if each.apart:
            save(out, statistic_file(each, FEW), private=True)
            save(out, statistic_file(PaneHeader(**each.header())))
            continue
        save(out, statistic_file(each))
        for estimator in ("mle", "em"):
            save(out, estimate_file(estimate(each, estimator)))


def save_of_all(out: Path, panes: Sequence[Statistic]) -> dict[str, Path]:
    """Save a file of all panes of each kind; returns them by kind and estimator."""

    def records(schema: str, of: Iterable[PaneHeader]) -> list[tuple[tuple[str, int], tuple[int, int], bytes]]:
        value = counts_to_avro if schema == "statistic" else Estimate.to_avro
        return [(each.key[:2], place_of(each), encode_record(schema, value(each))) for each in of]  # type: ignore[arg-type]

    kinds: dict[str, list[PaneHeader]] = {
        COUNTS: [PaneHeader(**each.header()) if each.apart else each for each in panes],
        FEW: [each for each in panes if each.apart],
    }
    paths = {
        kind: save(out, file_of_all(kind, records("statistic", of), "statistic"), private=kind == FEW)
        for kind, of in kinds.items()
        if of
    }
    for estimator in ("mle", "em"):
        if of := [estimate(each, estimator) for each in panes if not each.apart]:
            name = file_of_all("estimates", records("estimate", of), "estimate", f".{estimator}.avro")
            paths[estimator] = save(out, name)
    return paths


def results(out: Path) -> Path:
    folder_of(out, specs=SPECS)
    (out / "job.json").write_text("{}")
    return out
