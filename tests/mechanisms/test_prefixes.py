"""Strings that nobody lists: how pieces spell them, what a report says, what a search finds, and what it refuses."""

import itertools
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import build
from tests.mechanisms.estimates import ends_of
from uldp.mechanisms.catalog import build_protocol
from uldp.mechanisms.families.prefixes.decoder import PrefixShares, WalkDecoder
from uldp.mechanisms.protocol.decoder import Cost
from uldp.mechanisms.protocol.encoding import Held
from uldp.mechanisms.protocol.ldp_protocol import LdpProtocol
from uldp.mechanisms.randomizers.strata import Strata
from uldp.mechanisms.strings.candidate_decoder import CandidateDecoder
from uldp.mechanisms.strings.cohorts import OTHER, hash_positions, string_symbol
from uldp.mechanisms.strings.spelling import Spelling
from uldp.schemas.arrays import Counts
from uldp.schemas.specs.alphabet import characters
from uldp.schemas.specs.specfile import SpecError
from uldp.schemas.table import Table, TableName

WORDS = ["banana", "band", "bandage", "cab", "dab", "ab", "a"]
STRINGS = {"longest": 8, "alphabet": "a-gn"}


def of(strings: dict[str, Any] | None = None, more: dict[str, Any] | None = None, **mechanism: Any) -> dict[str, Any]:
    keys = {"name": "prefixes", "epsilon": 4.0, "cohorts": 64, "step": 2, "depth": 4} | mechanism
    return {"domain": {"strings": STRINGS if strings is None else strings}, "mechanism": keys} | (more or {})


def protocol_of(*keys: Any, **mechanism: Any) -> LdpProtocol:
    return build_protocol(build.spec(**of(*keys, **mechanism)))


def cells_of(protocol: LdpProtocol, texts: Sequence[str], seed: int = 5) -> Counts:
    held = Held(np.array(texts, dtype=np.object_), np.full(len(texts), -1))
    return protocol.mechanism.statistic(protocol.perturb([held], np.random.default_rng(seed)))


def table_of(tables: Sequence[Table], name: TableName) -> Table:
    return next(table for table in tables if table.name is name)


def found(protocol: LdpProtocol, cells: Counts, n: int) -> set[str]:
    tables = protocol.decoder.tables(cells, n, "auto")
    if len(tables) == 1:  # unexplained
        return set()
    table = table_of(tables, TableName.FOUND)
    return {str(key) for key, value in zip(table.keys or (), table.values, strict=True) if value}


# Pieces.

PIECES = ["a", "b", "ab", "aba", "bb"]


def all_texts(most: int) -> list[str]:
    return ["".join(text) for size in range(most + 1) for text in itertools.product("ab", repeat=size)]


def test_the_first_pieces_of_a_string_are_spelled_as_in_the_string() -> None:
    spelling = Spelling(PIECES)
    for text in all_texts(8):
        pieces = spelling.split(text)
        assert pieces is not None
        assert "".join(pieces) == text
        for length in range(len(pieces) + 1):
            assert spelling.split("".join(pieces[:length])) == pieces[:length]


@pytest.mark.parametrize("further", [1, 2])
@pytest.mark.parametrize("prefix", ["", "a", "ab", "abab", "bb"])
def test_all_strings_follow_a_prefix_that_begin_with_its_pieces(prefix: str, further: int) -> None:
    spelling, longest = Spelling(PIECES), 7
    own = spelling.split(prefix)
    assert own is not None
    expected = {
        text: len(pieces) - len(own)
        for text in all_texts(longest)
        if (pieces := spelling.split(text)) is not None
        and pieces[: len(own)] == own
        and len(pieces) <= len(own) + further
    }
    following = [*spelling.following(prefix, further, longest)]
    assert dict(following) == expected
    assert len(following) == len(expected)


# A report.


@pytest.mark.parametrize("text", ["banana", "a", "", "bane", "Ab"])
def test_a_report_is_that_of_a_prefix_or_of_the_whole_string(text: str) -> None:
    protocol, n = protocol_of(epsilon=20.0, buckets=7, depth=2), 2_000
    held = Held(np.array([text] * n, dtype=np.object_), np.full(n, -1))
    part, rest = np.divmod(protocol.perturb([held], np.random.default_rng(1)).astype(np.int64), 64 * 7)
    cohorts, buckets = np.divmod(rest, 7)
    longest = STRINGS["longest"]
    assert isinstance(longest, int)
    spelled = all(character in "abcdefgn" for character in text)
    symbols = [string_symbol(text[:size], longest + at) if spelled else OTHER for at, size in ((1, 2), (2, 4))]
    expected = np.array([*symbols, string_symbol(text, longest)])[part]
    assert (hash_positions(cohorts, expected, 1, 7)[:, 0] == buckets).all()
    assert abs(np.bincount(part) - n / 3).max() < 5 * math.sqrt(n / 3)


# A search.


def test_what_many_hold_is_found_with_its_share_and_the_others_are_unexplained() -> None:
    protocol, n = protocol_of(), 40_000
    rng = np.random.default_rng(4)
    rare = ["".join(rng.choice(list("abcdefgn"), 8)) for _ in range(n * 3 // 10)]
    texts = [*rng.choice(WORDS, n - len(rare)), *rare]
    cells, decoder = cells_of(protocol, texts), protocol.decoder
    tables = decoder.tables(cells, n, "empirical")
    share, shares = table_of(tables, TableName.SHARE), Counter(texts)
    assert set(share.keys or ()) == set(WORDS)
    assert isinstance(decoder, WalkDecoder)
    assert share.level == pytest.approx(1 - 0.05 * len(WORDS) / len(decoder.found(cells, n)))
    for key, low, high in zip(share.keys or (), *ends_of(share), strict=True):
        assert low < shares[str(key)] / n < high
    (unexplained,) = table_of(tables, TableName.UNEXPLAINED).values
    assert unexplained == pytest.approx(0.3, abs=0.05)


def test_candidates_are_in_the_tables_found_or_not_and_before_what_is_found() -> None:
    protocol, n = protocol_of(STRINGS, {"candidates": ["gag", "KIOSK", "band"]}), 20_000
    cells = cells_of(protocol, np.random.default_rng(4).choice(["band", "cab"], n).tolist())
    tables = protocol.decoder.tables(cells, n, "auto")
    assert table_of(tables, TableName.SHARE).keys == ("gag", "KIOSK", "band", "cab")
    assert table_of(tables, TableName.FOUND).values.tolist() == [0, 0, 1, 1]


def test_reports_of_whole_strings_have_no_part_in_the_choice() -> None:
    protocol, n = protocol_of(), 20_000
    decoder, strata = protocol.decoder, protocol.mechanism
    assert isinstance(decoder, WalkDecoder)
    assert isinstance(strata, Strata)
    held = np.random.default_rng(4).choice(WORDS, n).tolist()
    cells = cells_of(protocol, held)
    own, reports = strata.split_cells(cells)[-1]
    other = np.random.default_rng(5).multinomial(reports, np.full(len(own), 1 / len(own)))
    uniform = np.concatenate([cells[: -len(own)], other])
    assert decoder.found(uniform, n) == decoder.found(cells, n)
    assert found(protocol, cells, n) == set(WORDS)
    assert found(protocol, uniform, n) == set()


def null_runs(runs: int) -> int:
    """In how many runs a string is found, if each of 30,000 users holds another one, of frequent prefixes."""
    protocol, false, n = protocol_of(depth=3, cohorts=256), 0, 30_000
    for seed in range(runs):
        rng = np.random.default_rng([6, seed])
        heads = rng.choice(["ban", "cab", "da"], n)
        texts = [head + "".join(rest) for head, rest in zip(heads, rng.choice(list("abcdefgn"), (n, 5)), strict=True)]
        false += bool(found(protocol, cells_of(protocol, texts, seed), n) - {*texts})
    return false


def test_frequent_prefixes_of_rare_strings_are_not_found() -> None:
    assert null_runs(3) <= 1


@pytest.mark.nightly
def test_a_string_that_nobody_holds_is_found_in_at_most_5_percent_of_runs() -> None:
    assert null_runs(200) <= 10


@pytest.mark.parametrize("held_by_all", [0.0, 0.3])
def test_a_string_is_as_seldom_more_frequent_than_its_prefixes_as_its_p_value_says(held_by_all: float) -> None:
    """Of strings with no other string of their first piece: the share of a prefix is no larger, the least it can be."""
    protocol, n, windows = protocol_of(cohorts=128, step=2, depth=2), 6_000, 25
    decoder, words = protocol.decoder, ["ab", "bagg", "cede", "dance"]
    assert isinstance(decoder, WalkDecoder)
    rng, p_values = np.random.default_rng(9), list[float]()
    for seed in range(windows):
        shares = np.array([held_by_all, 0.02, 0.02, 0.02, 0.94 - held_by_all])
        texts = rng.choice(np.array([*words, "ff"], dtype=np.object_), n, p=shares / shares.sum()).tolist()
        cells = cells_of(protocol, texts, seed)
        *of_lengths, whole = decoder.parts(cells, n)
        levels = [decoder.decoders[0].cells_of(part.cells, part.n) for part in of_lengths]
        linear = CandidateDecoder(protocol.mechanism.parts[-1], words, 8).linear(whole.cells, whole.n)
        p_values += PrefixShares(decoder.walk, words).excess_p_values(linear, levels).tolist()
    for level in (0.5, 0.1, 0.02):
        expected = level * len(p_values)
        assert sum(p <= level for p in p_values) <= expected + 3 * math.sqrt(expected)


def test_a_search_is_final_so_early_panes_have_no_estimates() -> None:
    decoder = protocol_of().decoder
    assert {decoder.cost(estimator) for estimator in decoder.estimators} == {Cost.FINAL}


def test_a_window_without_reports_of_whole_strings_has_no_estimate() -> None:
    protocol = protocol_of()
    assert isinstance(protocol.mechanism, Strata)
    cells = np.zeros(protocol.mechanism.statistic_size, dtype=np.int64)
    cells[0] = 3
    with pytest.raises(ValueError, match="an estimate needs one report or more, got n=0"):
        protocol.decoder.tables(cells, 3, "auto")


# Specs.


def test_an_alphabet_is_ranges_and_characters() -> None:
    assert characters("0-2-_.ac-e") == "-.012_acde"
    assert characters("ca-") == "-ac"


def test_pieces_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pieces.txt").write_text("an\nban\n", encoding="utf-8")
    keys = of({"longest": 8, "alphabet": "a-n", "pieces_file": "pieces.txt"})
    decoder = build_protocol(build.spec(**keys)).decoder
    assert isinstance(decoder, WalkDecoder)
    assert decoder.walk.spelling.split("banana") == ["ban", "an", "a"]
    (tmp_path / "pieces.txt").write_bytes(b"\xff")
    with pytest.raises(SpecError, match=r"domain\.strings\.pieces_file: pieces\.txt: "):
        build.spec(**keys)
    (tmp_path / "pieces.txt").write_text("a" * (1 << 21), encoding="utf-8")
    with pytest.raises(SpecError, match=r"domain\.strings\.pieces_file: pieces\.txt: "):
        build.spec(**keys)


def test_pieces_that_begin_alike_take_no_minutes() -> None:
    """16,000 pieces of the same 31 characters, each of which would go on with what is behind any other one."""
    alike = ["a" * 29 + "".join(end) for end in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=3)][:16_000]
    spelling, start = Spelling({*alike, *"abcdefghijklmnopqrstuvwxyz"}), time.process_time()
    assert spelling.split("a" * 65_536) is not None
    assert sum(1 for _ in spelling.following("a" * 28, 1, 64)) > 0
    assert time.process_time() - start < 5


@pytest.mark.parametrize(("users", "cohorts", "text"), [
    (1_000, 64, "a string is found only from a share of about"),
    (3_000_000, 64, "64 cohorts are few for 3,000,000 users"),
    (3_000_000, 4096, None),
])  # fmt: skip
def test_few_users_and_few_cohorts_are_a_warning(users: int, cohorts: int, text: str | None) -> None:
    decoder = protocol_of(epsilon=2.0, cohorts=cohorts).decoder
    lines = [*decoder.warnings(users, users, "auto")]
    assert len(lines) == (text is not None)
    assert text is None or text in lines[0]
