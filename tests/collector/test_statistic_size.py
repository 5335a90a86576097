"""Mechanisms whose statistic would be too large, or could overflow, are refused before a job begins."""

import re
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pytest

from tests.build import spec
from uldp.collector.collections import serve
from uldp.mechanisms import catalog
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.protocol.mechanism import MOST_CELLS, Guarantee, Mechanism, PayloadForm, Privacy, Randomness
from uldp.schemas.arrays import Mask, Payloads, Symbols, Values

#: 2^63 / 2^40.
TOO_FAR = 1 << 23


class FakeMechanism(Mechanism):
    """A mechanism with a statistic of any size, which nobody uses."""

    guarantee = Guarantee(Privacy.LDP, 1.0)
    size = 5
    form = PayloadForm(symbols=5)
    partitions = False

    def __init__(self, cells: int, step: int) -> None:
        self.statistic_size = cells
        self.largest_step = step

    def perturb(self, symbols: Values, randomness: Randomness) -> NoReturn:
        raise NotImplementedError

    def possible(self, payloads: Payloads) -> Mask:
        return np.ones(len(payloads), dtype=np.bool_)

    def tally(self, parts: Sequence[Payloads], groups: Symbols, k: int) -> NoReturn:
        raise NotImplementedError


def serve_fake(monkeypatch: pytest.MonkeyPatch, cells: int, step: int) -> Mechanism:
    real = build_protocol(spec())
    fake = LdpProtocol(real.encoding, FakeMechanism(cells, step), real.decoder)
    monkeypatch.setattr(catalog, "build_variable", lambda variable: fake)
    return serve([spec()])["c", 1].mechanism


def test_the_largest_statistic_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve_fake(monkeypatch, MOST_CELLS, TOO_FAR - 1).statistic_size == 1 << 24


@pytest.mark.parametrize(
    ("cells", "step", "message"),
    [
        (
            MOST_CELLS + 1,
            1,
            "urr has 16,777,217 cells, but a statistic holds at most 16,777,216; use a domain with fewer",
        ),
        (
            5,
            TOO_FAR,
            "a report of urr moves a cell by up to 8,388,608, so 1,099,511,627,776 reports could exceed 64 bits",
        ),
    ],
)
def test_a_statistic_that_is_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch, cells: int, step: int, message: str
) -> None:
    with pytest.raises(ValueError, match=f"^collection c version 1: {re.escape(message)}"):
        serve_fake(monkeypatch, cells, step)


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 100 cells, because a statistic of the true limit takes seconds to set up."""
    monkeypatch.setattr("uldp.mechanisms.catalog.MOST_CELLS", 100)


@pytest.mark.usefixtures("most")
def test_a_record_whose_attributes_have_too_many_cells_together_is_refused() -> None:
    attributes = {"app": {"size": 100}, "place": {"size": 2}}
    of = {attribute: {"name": "rr"} for attribute in attributes}
    record = spec(domain={"record": attributes}, mechanism={"name": "sample-one", "epsilon": 1.0, "of": of})
    with pytest.raises(
        ValueError,
        match=r"^collection c version 1: sample-one has 102 cells, but a statistic holds at most 100;"
        r" use a domain with fewer attributes, or attributes with fewer values$",
    ):
        serve([record])
