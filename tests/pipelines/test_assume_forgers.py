"""A spec that assumes forgers publishes wider intervals beside the others, which all readers show."""

from pathlib import Path

import pytest

from tests import build
from tests.pipelines.command import Run
from tests.pipelines.report.test_page import Fired, save
from uldp.collector.collections import serve
from uldp.collector.estimating import estimates_of
from uldp.pipelines.results.soundness import sound_estimate
from uldp.schemas.estimate import Estimate
from uldp.schemas.rows import rows
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.statistic import Statistic

KEYS = build.MINIMAL | {"domain": {"size": 5}, "mechanism": {"name": "rr", "epsilon": 1.0}}
FORGED = KEYS | {"assume_forgers": 0.01}


def published(keys: dict[str, object]) -> tuple[Statistic, Estimate]:
    spec = CollectionSpec.parse(keys)
    statistic = build.pane([3000, 2500, 2000, 1500, 1000], key=spec.key, device_digest=spec.device_digest)
    (estimate,) = estimates_of(serve([spec])[spec.key], statistic)
    return statistic, estimate


def test_forgers_are_of_the_reading_half() -> None:
    assert CollectionSpec.parse(FORGED).device_digest == CollectionSpec.parse(KEYS).device_digest


@pytest.mark.parametrize("share", [0, 1, -0.1])
def test_a_share_of_forgers_is_between_0_and_1(share: float) -> None:
    with pytest.raises(SpecError, match="assume_forgers: must be"):
        CollectionSpec.parse(KEYS | {"assume_forgers": share})


def test_readers_show_both_intervals(uldp: Run, tmp_path: Path) -> None:
    statistic, estimate = published(FORGED)
    spec = CollectionSpec.parse(FORGED)
    save(tmp_path / "out", FORGED, Fired(statistic, estimate))
    (share,) = estimate.tables
    assert sound_estimate(estimate.to_avro()) == estimate
    assert share.low_forged is not None
    assert share.high_forged is not None
    ends = f"{100 * share.low_forged[0]:.1f} to {100 * share.high_forged[0]:.1f}"
    code, out, _ = uldp("show", tmp_path / "out")
    assert (code, f"[{ends}]" in out, "if up to 1 % of all reports are forged" in out) == (0, True, True)
    code, out, _ = uldp("report", tmp_path / "out", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (code, ends in page, "If 1 % are forged" in page) == (0, True, True)
    row, *_ = rows(estimate, spec)
    assert (row["low_forged"], row["high_forged"]) == (share.low_forged[0], share.high_forged[0])


def test_a_check_says_how_much_forgers_move(uldp: Run, tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text(str(FORGED))
    _, out, _ = uldp("check", tmp_path / "spec.yaml")
    assert "allow 1 % of all reports to be forged" in out
    assert "and 1 % of them by up to 3.91" in out
