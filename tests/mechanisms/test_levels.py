"""Levels of privacy: the level of a device, and one estimate from the reports of all levels."""

from typing import Any

import numpy as np
import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.devices.spending import BudgetExceededError
from uldp.mechanisms.families.levels.decoder import DIFFER_LEVEL, LevelsDecoder
from uldp.mechanisms.inference.plausibility import ALARM_LEVEL
from uldp.mechanisms.randomizers.strata import Strata
from uldp.pipelines.report.guarantee import guarantee
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.flags import Flag
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.mechanism_family import family, names_where

LEVELS: dict[str, Any] = {"strict": {"epsilon": 0.5}, "open": {"epsilon": 2.0}}


def keys(levels: Any = LEVELS, of: Any = {"name": "oue"}, **more: Any) -> dict[str, Any]:  # noqa: B006
    return {"domain": {"size": 6}, "mechanism": {"name": "levels", "levels": levels, "of": of} | more}


def strata(spec: CollectionSpec) -> Strata:
    mechanism = build_protocol(spec).mechanism
    assert isinstance(mechanism, Strata)
    return mechanism


@pytest.mark.parametrize("level", ["strict", "open"])
def test_a_device_reports_at_its_level(level: str) -> None:
    spec = build.spec(**keys(levels={"strict": {"epsilon": 0.5}, "open": {"epsilon": 20.0}}, of={"name": "rr"}))
    device = Device(spec, {}, level=level)
    payloads = np.array([report_store().decode(device.report(5, build.START))[1]["payload"] for _ in range(300)])
    assert set(payloads // 6) == {list(LEVELS).index(level)}
    assert ((payloads == 11).all()) == (level == "open")


@pytest.mark.parametrize(("level", "reports"), [("strict", 8), ("open", 2)])
def test_a_device_spends_the_budget_of_its_level(level: str, reports: int) -> None:
    spec = build.spec(**keys(), budget={"epsilon": 4, "every": "1d"})
    device = Device(spec, {}, ledger=MemoryLedger(), level=level)
    for _ in range(reports):
        device.report(1, build.START)
    with pytest.raises(BudgetExceededError):
        device.report(1, build.START)


def test_a_device_keeps_its_response_at_its_level() -> None:
    levels = {name: level | {"lasting_epsilon": 5 + 4 * level["epsilon"]} for name, level in LEVELS.items()}
    spec, ledger = build.spec(**keys(levels)), MemoryLedger()
    device = Device(spec, {}, ledger=ledger, level="strict")
    for hours in range(3):
        device.report(1, build.START + hours * build.HOUR)
    with ledger.change() as content:
        assert [spending.epsilon for spending in content.spent] == [0.5, 6.5]


def test_levels_may_have_any_number_of_reports() -> None:
    protocol, rng = build_protocol(build.spec(**keys())), np.random.default_rng(3)
    cells = protocol.mechanism.statistic(protocol.mechanism.perturb(rng.integers(6, 12, 3000), rng))
    assert protocol.decoder.p_values(cells, 3000)[Flag.IMPROBABLE_COUNTS] > 0.01
    assert Flag.IMPROBABLE_STRATA not in protocol.decoder.p_values(cells, 3000)
    total, level = protocol.decoder.tables(cells, 3000, "auto")
    assert (total.of, level.of, level.n) == ((), ("open",), 3000)
    assert np.abs(total.values - 1 / 6).max() < 0.1


#: Half of the users choose epsilon 1, of whom 15 % hold value 0, and half epsilon 3, of whom 5 % do.
DIFFERENT = (np.array([0.15, *[0.17] * 5]), np.array([0.05, *[0.19] * 5]))
WINDOWS, REPORTS = 60, 100_000


def windows(*held: Floats, reports: int = REPORTS) -> tuple[LevelsDecoder, list[Counts]]:
    """Draw the cells of windows in which the users of both levels hold these distributions."""
    levels = {"strict": {"epsilon": 1.0}, "open": {"epsilon": 3.0}}
    protocol, rng = build_protocol(build.spec(**keys(levels, of={"name": "rr"}))), np.random.default_rng(4)
    decoder = protocol.decoder
    assert isinstance(decoder, LevelsDecoder)
    drawn = [
        np.concatenate([each.draw_counts(r, reports // 2, rng) for each, r in zip(decoder.decoders, held, strict=True)])
        for _ in range(WINDOWS)
    ]
    return decoder, drawn


def test_levels_that_differ_are_flagged() -> None:
    decoder, drawn = windows(*DIFFERENT)
    assert max(decoder.p_values(cells, REPORTS)[Flag.LEVELS_DIFFER] for cells in drawn) < ALARM_LEVEL


def test_levels_that_are_alike_are_pooled_but_in_one_window_of_twenty() -> None:
    decoder, drawn = windows(DIFFERENT[0], DIFFERENT[0], reports=5000)
    p_values = np.array([decoder.p_values(cells, 5000)[Flag.LEVELS_DIFFER] for cells in drawn])
    expected = DIFFER_LEVEL * WINDOWS
    assert (p_values <= DIFFER_LEVEL).sum() < expected + 4 * np.sqrt(expected)
    pooled = [decoder.tables(cells, 5000, "auto")[0] for cells in np.array(drawn)[p_values == 1]]
    # The inverse variances add up to less than that of the level with the larger epsilon.
    assert all((table.stderr < 1.1 * decoder.decoders[1].forecast(2500)).all() for table in pooled)


def test_the_page_names_each_level() -> None:
    assert "a report names it: epsilon 0.5 at strict, 2 at open." in guarantee(build.spec(**keys()))


def test_expected_shares_are_no_part_of_the_channel() -> None:
    shared = {"strict": {"epsilon": 0.5, "share": 0.1}, "open": {"epsilon": 2.0, "share": 0.9}}
    assert build.spec(**keys(shared)).device_digest == build.spec(**keys()).device_digest
    other = {"strict": {"epsilon": 0.6}, "open": {"epsilon": 2.0}}
    assert build.spec(**keys(other)).device_digest != build.spec(**keys()).device_digest


def test_a_parameter_of_all_levels_is_another_device_half_than_a_default_of_each() -> None:
    alone, shared = ({"name": "olh"}, {"name": "olh", "buckets": 8})  # 8 buckets are the default at epsilon 2
    halves = [build.spec(**keys(of=of)).device_digest for of in (alone, shared)]
    assert halves[0] != halves[1]


def test_each_mechanism_for_values_is_one_of_levels_or_is_refused_with_the_reason() -> None:
    refused = names_where(lambda model: model.domain_kind == "values" and not model.is_level()).split(", ")
    assert all(family(name).not_in_levels or "levels" in family(name).model_fields for name in refused)
