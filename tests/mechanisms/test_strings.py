"""Strings: their symbols and hashes, and devices that hold them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.build import HOUR, START
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.devices.device import Device
from uldp.mechanisms.devices.ledger import MemoryLedger
from uldp.mechanisms.families.bloom.randomizer import BloomFilter
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


@pytest.mark.parametrize("value", [SECRET * 2, "\ud800" + SECRET, 5, SECRET.encode()])
def test_a_device_refuses_other_values_and_names_none(value: Any) -> None:
    spec = build.spec(domain=STRINGS, mechanism={"name": "bloom", "epsilon": 1.0})
    with pytest.raises((ValueError, TypeError)) as caught:
        Device(spec, hidden={}).report(value, START)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_device_keeps_its_response_to_a_string_and_its_cohort() -> None:
    mechanism = {"name": "bloom", "epsilon": 1.0, "lasting_epsilon": 1.0}
    device = Device(build.spec(domain=STRINGS, mechanism=mechanism), hidden={}, ledger=MemoryLedger())
    payloads = [
        report_store().decode(device.report(text, START + day * HOUR))[1]["payload"]
        for day, text in enumerate([SECRET, "other", SECRET, SECRET])
    ]
    # Without noise on top, all reports of a string are the same.
    assert payloads[0] == payloads[2] == payloads[3] != payloads[1]


def of(name: str, **parameters: Any) -> dict[str, Any]:
    return {"domain": STRINGS, "mechanism": {"name": name, "epsilon": 1.0} | parameters}


MISTAKES: Sequence[tuple[Mapping[str, Any], str]] = [
    (
        of("bloom", hashes=65),
        (
            "mechanism.hashes: must be at most half of bits: two strings differ in up to 130 bits, and there are 128;"
            " write 64 or fewer, 2 are usual (got 65)"
        ),
    ),
    (of("bloom", bits=12), "mechanism.bits: must be a multiple of 8, such as 16 (got 12)"),
    (of("bloom", cohorts=0), "mechanism.cohorts: must be 1 or more (got 0)"),
    (of("cohort-olh", cohorts=0), "mechanism.cohorts: must be 1 or more (got 0)"),
    (
        of("cohort-olh", buckets=65_536, cohorts=300),
        (
            "mechanism.cohorts: 300 cohorts of 65,536 buckets have more than 16,777,216 cells; write 256 or fewer"
            " (got 300)"
        ),
    ),
    (of("bloom") | {"tags": [{"name": "home"}]}, "bloom protects every string alike; remove tags"),
    (of("cohort-olh") | {"sensitive": ["a"]}, "cohort-olh protects every string alike; remove sensitive"),
    (
        of("bloom") | {"candidates": ["a", "123456789"]},
        (
            "candidates: entry 2, '123456789': the string has 9 bytes of UTF-8, and the longest has 8; shorten or"
            " remove it"
        ),
    ),
    (of("bloom") | {"candidates": ["a", "a"]}, "candidates: entry 2, 'a', occurs twice; remove one"),
    (
        of("bloom") | {"candidates": [5]},
        "candidates.0: must be text (YAML reads this as the number 5; write it in quotes)",
    ),
    (
        of("bloom") | {"candidates": [str(i) for i in range(100_001)]},
        "candidates: 100,001 strings, but an estimate of this mechanism has at most 100,000; ask about fewer at a time",
    ),
    (
        of("cohort-olh", cohorts=65_536) | {"candidates": [str(i) for i in range(8193)]},
        "candidates: 8,193 strings, but an estimate of this mechanism has at most 8,192; ask about fewer at a time",
    ),
    (
        of("bloom") | {"candidates": ["a"], "candidates_file": "a.csv"},
        "candidates: give the list or candidates_file; remove one",
    ),
    (
        {"candidates": ["a"]},
        "candidates: only strings have candidates; remove it, or give domain: {strings: ...}",
    ),
    (
        of("olh"),
        "mechanism: olh is for several values, and the domain is strings; choose one of bloom, cohort-olh, prefixes",
    ),
]


@pytest.mark.parametrize(("keys", "text"), MISTAKES, ids=lambda value: value if isinstance(value, str) else "")
def test_each_mistake_is_one_line_of_key_and_remedy(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(SpecError) as caught:
        build.spec(**keys)
    assert str(caught.value) == f"spec: {text}"


def test_candidates_are_of_the_reading_half() -> None:
    without, listed = build.spec(**of("bloom")), build.spec(**of("bloom"), candidates=["a"])
    assert without.device_digest == listed.device_digest
    assert build.spec(**of("bloom", bits=64)).device_digest != without.device_digest
    longer = build.spec(**of("bloom") | {"domain": {"strings": {"longest": 9}}})
    assert longer.device_digest != without.device_digest


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
