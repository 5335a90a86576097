"""Which estimators run in which pane."""

from dataclasses import replace

import pytest

from tests import build
from uldp.collector.collections import ServedCollection, serve
from uldp.collector.estimating import estimates_of
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.protocol.decoder import Cost
from uldp.schemas.pane import Pane, PaneKind

RR = {"name": "rr", "epsilon": 1.0}
ONE = build.spec(mechanism=RR, estimator=["empirical", "auto"])
RECORD = {"record": {"a": {"size": 5}, "b": {"number": {"low": 0.0, "high": 1.0}}}}
SEVERAL = build.spec(
    domain=RECORD,
    mechanism={"name": "sample-one", "epsilon": 1.0, "of": {"a": {"name": "rr"}, "b": {"name": "duchi"}}},
    estimator=["empirical", "auto"],
)


def served(spec: object) -> ServedCollection:
    assert spec in (ONE, SEVERAL)
    return serve([ONE if spec is ONE else SEVERAL])[("c", 1)]


@pytest.mark.parametrize(("spec", "cells"), [(ONE, [90, 40, 30, 20, 20]), (SEVERAL, [45, 20, 15, 10, 10, 40, 60])])
@pytest.mark.parametrize("kind", PaneKind)
def test_an_early_pane_has_no_estimate_that_costs_too_much(
    spec: object, cells: list[int], kind: PaneKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost(self: PureDecoder, estimator: str) -> Cost:
        return Cost.FINAL if estimator == "auto" else Cost.PANE

    monkeypatch.setattr(PureDecoder, "cost", cost)
    of = served(spec)
    pane = build.pane(cells, key=of.spec.key, device_digest=of.device_digest)
    found = [each.estimator for each in estimates_of(of, replace(pane, pane=Pane(kind, 0)))]
    assert found == (["empirical"] if kind is PaneKind.EARLY else ["empirical", "auto"])
