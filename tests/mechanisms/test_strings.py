"""Strings: their symbols and hashes, and devices that hold them."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.families.local_hashing.bloom import BloomFilter
from uldp.mechanisms.strings.cohorts import hash_positions, string_symbol
from uldp.schemas.arrays import Counts, Floats
from uldp.schemas.framing import report_store
from uldp.schemas.specs.collection import CollectionSpec
from uldp.schemas.specs.specfile import SpecError

STRINGS = {"strings": {"longest": 8}}
SECRET = "hunter2"
#: Symbols, as those of strings.
SYMBOLS = [string_symbol(f"string {i}", 32) for i in range(60)]


def chi_square_score(counts: Counts, expected: Floats) -> float:
    """The z-score of Pearson's statistic."""
    degrees = len(counts) - 1
    return float((((counts - expected) ** 2 / expected).sum() - degrees) / math.sqrt(2 * degrees))


@pytest.mark.parametrize("f", [0.25, 0.5, 0.75])
@pytest.mark.parametrize("hashes", [1, 2, 4])
def test_epsilon_is_that_of_rappor_for_the_number_of_hashes(f: float, hashes: int) -> None:
    """Erlingsson, Pihur & Korolova (CCS 2014), theorem 1: 2h ln((1 - f/2) / (f/2)) for the permanent response."""
    bloom = BloomFilter(2 * hashes * math.log((1 - f / 2) / (f / 2)), 16, hashes, 1)
    assert (bloom.theta, bloom.q) == pytest.approx((1 - f / 2, f / 2), rel=1e-12)


@pytest.mark.parametrize(("hashes", "size"), [(1, 2), (1, 8), (2, 32)])
def test_hashes_of_two_strings_over_cohorts_are_uniform_and_independent(hashes: int, size: int) -> None:
    cohorts = np.arange(1 << 15)
    one, other = (hash_positions(cohorts, np.array(symbol), hashes, size)[:, -1] for symbol in SYMBOLS[:2])
    pairs = np.bincount(one * size + other, minlength=size**2)
    assert abs(chi_square_score(pairs, np.full(size**2, len(cohorts) / size**2))) < 5
    next_cohort = np.bincount(one[:-1] * size + one[1:], minlength=size**2)
    assert abs(chi_square_score(next_cohort, np.full(size**2, (len(cohorts) - 1) / size**2))) < 5


def test_a_string_has_the_symbol_of_all_its_bytes() -> None:
    texts = ["", "a", "a\0", "a ", "A", "é", "e\u0301", "12345678"]
    assert len({string_symbol(text, 8) for text in texts}) == len(texts)
    assert all(0 <= string_symbol(text, 8) < 1 << 48 for text in texts)
    assert string_symbol("a", 8) != string_symbol("a", 9)


def test_a_report_of_no_cohort_is_impossible() -> None:
    payloads = np.array([[3, 0, 255], [2, 1, 0], [2, 0, 255], [0, 0, 0]], dtype=np.uint8)
    assert BloomFilter(1.5, 8, 2, 3).possible(payloads).tolist() == [False, False, True, True]


# Specs and devices.


@pytest.mark.parametrize("mechanism", ["bloom", "cohort-olh"])
@pytest.mark.parametrize("text", ["", "日本", SECRET])
def test_a_device_reports_a_string(mechanism: str, text: str) -> None:
    spec = build.spec(domain=STRINGS, mechanism={"name": mechanism, "epsilon": 1.0}, candidates=[SECRET])
    message = Device(spec, hidden={}).report(text, START)
    payload = report_store().decode(message)[1]["payload"]
    column = np.array([payload], np.uint32) if isinstance(payload, int) else np.frombuffer(payload, np.uint8)[None]
    assert build_protocol(spec).mechanism.possible(column).all()
    assert SECRET.encode() not in message


def test_a_device_keeps_its_response_to_a_string_and_its_cohort() -> None:
    mechanism = {"name": "bloom", "epsilon": 1.0, "lasting_epsilon": 1.0}
    device = Device(build.spec(domain=STRINGS, mechanism=mechanism), hidden={}, ledger=MemoryLedger())
    payloads = [
        report_store().decode(device.report(text, START + day * HOUR))[1]["payload"]
        for day, text in enumerate([SECRET, "other", SECRET, SECRET])
    ]
    # Without noise on top, all reports of a string are the same.
    assert payloads[0] == payloads[2] == payloads[3] != payloads[1]


def test_candidates_are_of_the_reading_half() -> None:
    keys: dict[str, Any] = {"domain": STRINGS, "mechanism": {"name": "bloom", "epsilon": 1.0}}
    assert build.spec(**keys).device_digest == build.spec(**keys, candidates=["a"]).device_digest


def test_a_file_of_candidates_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text("value\na\n")
    with path.open("r+b") as file:
        file.truncate((1 << 24) + 1)
    (tmp_path / "spec.yaml").write_text(
        "collection: c\nversion: 1\ndomain: {strings: {longest: 12}}\nmechanism: {name: cohort-olh, epsilon: 1.0}\n"
        "candidates_file: names.csv\nwindow: {size: 1d}\n"
    )
    with pytest.raises(SpecError, match=r"names.csv: the file has more than 16,777,216 bytes; is this the"):
        CollectionSpec.load(tmp_path / "spec.yaml")
