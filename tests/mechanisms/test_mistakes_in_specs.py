"""Mistakes in the parameters of single mechanisms: each is one line with the key, the reason and the remedy.

``test_refused_specs.py`` has the mistakes that can be made with every mechanism.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from tests import build
from uldp.mechanisms.catalog import build_protocol
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.specfile import SpecError

NUMBER, SET = {"number": {"low": 0, "high": 100}}, {"set": {"of": {"size": 9}, "at_most": 3}}
STRINGS, SPELLED = {"strings": {"longest": 8}}, {"longest": 8, "alphabet": "a-gn"}
DISEASES = {"labels": ["flu", "cold", "hiv", "none"]}
RECORD = {"record": {"os": {"size": 2}, "b": {"size": 2}}}
CAPITALS = {"longest": 8, "alphabet": chr(0x4E00) + "-" + chr(0x4E00 + 9999)}

Keys = Mapping[str, Any]


def of(name: str, domain: Keys, more: Keys | None = None, /, **parameters: Any) -> Keys:
    """A spec of a mechanism over a domain, with more keys."""
    return {"domain": domain, "mechanism": {"name": name, "epsilon": 1.0} | parameters} | dict(more or {})


def idue(*groups: Keys, **keys: Any) -> Keys:
    return {"domain": DISEASES, "mechanism": {"name": "idue", "groups": list(groups)}} | keys


def levels(of: Any = "oue", /, **levels: Keys) -> Keys:
    inner = {"name": of} if isinstance(of, str) else of
    given = levels or {"strict": {"epsilon": 0.5}, "open": {"epsilon": 2.0}}
    return {"domain": {"size": 6}, "mechanism": {"name": "levels", "levels": given, "of": inner}}


def set_of(of_set: Keys, most: int = 3) -> Keys:
    return {"set": {"of": of_set, "at_most": most}}


def pairs(**keys: Any) -> Keys:
    return {"pairs": {"of": {"size": 6}, "at_most": 2, "low": -10, "high": 30} | keys}


def ranking(*candidates: str) -> Keys:
    return {"ranking": {"of": [*candidates]}}


def prefixes(strings: Keys = SPELLED, more: Keys | None = None, /, **parameters: Any) -> Keys:
    given = {"epsilon": 4.0, "cohorts": 64, "step": 2, "depth": 4} | parameters
    return of("prefixes", {"strings": strings}, more, **given)


def by(**attributes: Any) -> Keys:
    return {"by": attributes}


FLU, HIV = {"epsilon": 1.0}, {"values": [2, "hiv"], "epsilon": 2.0}
SHARED, LASTING = {"epsilon": 1, "share": 0.2}, {"epsilon": 1, "lasting_epsilon": 2}
TWO = {"os": {"name": "rr"}, "b": {"name": "rr"}}
MISTAKES: list[tuple[Keys, str]] = [
    (of("bit-flip", {"size": 10}, bits=None), "bit-flip needs bits, the number of bits of a report, for example"),
    (of("bit-flip", {"size": 10}, bits=0), "mechanism.bits: must be 1 or more (got 0)"),
    (of("bit-flip", {"size": 10}, bits=11), "there are only 10 values; write 10 or less, or choose sue for all bits"),
    (of("bit-flip", {"size": 10_000}, bits=9), "9 bits of 10,000 values need more than 1,024 designs; write 10 or"),
    (of("linear-olh", {"size": (1 << 20) + 1}), "takes at most 1,048,576 values, got 1,048,577; use hrr, or"),
    (of("hrr", {"size": (1 << 23) + 1}), "takes at most 8,388,608 values, got 8,388,609; use oue, or"),
    (of("geometric", NUMBER, epsilon=0.001), "mechanism.epsilon: must be 0.01 or more"),
    (of("the", {"size": 5}, theta=0.5), "mechanism.theta: must be more than 0.5 and less than 1, such as 0.75"),
    (of("she", {"size": 100_001}), "two bytes for each value, so it takes at most 100,000 values, got 100,001; use"),
    (of("she", {"size": 5}, epsilon=0.002), "mechanism.epsilon: must be 0.0025 or more"),
    # Groups and levels.
    (idue(FLU), "mechanism.groups: must have 2 entries or more"),
    (idue(FLU, {"epsilon": 2.0}), "mechanism.groups: 1: missing values; only one group holds"),
    (idue(FLU, {"values": ["hi"], "epsilon": 2.0}), "mechanism.groups: 1.values: 'hi' is not a label of"),
    (idue(FLU, HIV), "1.values: 'hiv' occurs twice"),
    (idue({"values": [0]} | FLU, {"values": [1], "epsilon": 2.0}), "'hiv' is in no group; leave values out"),
    (idue(FLU, {"values": [0, 1, 2, 3], "epsilon": 2.0}), "0: the other groups name all values"),
    (idue(FLU, {"values": [0], "epsilon": 1.0}), "two groups have the same epsilon; merge them"),
    (idue(FLU, {"values": [2], "epsilon": 2.0}, estimator="norm-sub"), "norm-sub cannot be the first of idue: it"),
    (levels(strict={"epsilon": 0.5}), "mechanism.levels: give two levels or more"),
    (levels(strict=SHARED, open={"epsilon": 2}), "give each level a share, or none"),
    (levels(strict=SHARED, open=SHARED | {"epsilon": 2}), "mechanism.levels: the shares must sum to 1, got 0.4"),
    (levels(strict=LASTING, open={"epsilon": 2}), "give each level a lasting_epsilon, or"),
    (levels(strict=LASTING | {"lasting_epsilon": 0}, open={"epsilon": 2}), "levels.strict.lasting_epsilon: must be"),
    (levels("duchi"), "mechanism.of.name: must be one of 'rr', 'warner'"),
    (levels("she"), "mechanism.of: levels do not take she: no count of its reports supports a value"),
    (levels({"name": "bit-flip", "bits": 2}), "mechanism.of: levels do not take bit-flip: levels pool counts"),
    (levels("idue"), "mechanism.of: levels do not take idue: its groups have their own epsilons"),
    (levels({"name": "uss", "w": 9}), "mechanism.of.w: a set of 6 sensitive symbols (values and tags) has 1 to 5"),
    # Distances.
    (of("metric", {"size": 4097}), "has a probability for each pair of values, so it takes at most 4,096"),
    (of("metric", {"size": 25}, columns=4), "mechanism.columns: 4 columns do not divide 25 values into full rows; the"),
    (of("metric", {"size": 25}, columns=26), "into full rows; the nearest number that does is 25"),
    (of("metric", {"size": 7}, columns=4), "remove columns, because no number does"),
    (of("metric", {"size": 25, "columns": 5}), "distances are those on a line, but the domain is a grid of 5"),
    (of("metric", {"size": 25, "columns": 5}, columns=25), "is a grid of 5 columns; write columns: 5 in both, or"),
    (of("metric", {"size": 25}, {"budget": {"epsilon": 4, "every": "1d"}}), "budget: the epsilon of metric is for a"),
    # Sets, pairs and rankings.
    (of("set-ss", set_of({"size": 9}, 10)), "domain.set.at_most: there are 9 different items, got 10"),
    (of("set-ss", set_of({"size": 9, "labels": ["a", "b"]}, 1)), "domain.set.of: give one of size, labels"),
    (of("set-ss", set_of({"labels": ["a", "b;c"]}, 1)), "domain.set.of: the label 'b;c' is empty or has ';'"),
    (of("set-ss", set_of({"size": 10_001})), "at most 10,000 values, got 10,001; use set-olh for sets, or merge"),
    *((of("set-ss", SET, sizes=sizes), "mechanism.sizes: ") for sizes in (0, 0.0009, 0.51, "auto")),
    (of("set-olh", SET, lasting_epsilon=0.5), "must be at least epsilon"),
    (of("set-olh", SET, buckets=3), "buckets: must be more than at_most, 3, and at most 65,536, or auto"),
    (of("set-olh", SET, cohorts=8), "a report about listed items has a hash function of its own; remove it"),
    (of("set-ss", pairs(low=3, high=3)), "low must be less than high, got 3 and 3"),
    (of("set-ss", pairs(at_most=7)), "there are 6 different keys, got 7; write 6 or fewer"),
    (of("set-ss", pairs(of={"labels": ["a=b", "c"]})), "the label 'a=b' is empty or has ';' or '=', which stands"),
    (of("set-ss", pairs(of=STRINGS)), "keys with numbers are of a list; give size, labels or labels_file in place of"),
    (of("pairs", ranking("a", "a")), "label 'a' occurs twice"),
    (of("pairs", ranking("a>b", "c")), "cannot be a candidate"),
    (of("pairs", ranking("a")), "must have 2 entries or more"),
    (of("pairs", ranking(*map(str, range(33)))), "must have 32 entries or fewer"),
    # Trees and public attributes.
    (of("tree", NUMBER, {"ranges": [[0, 10.04]]}, bins=1000), "ranges.0: 10.04 is inside of a bin; the nearest edge"),
    (of("tree", NUMBER, {"ranges": [[10, 0]]}, bins=1000), "a range goes from a lower to a higher number, got 10 and"),
    (of("tree", NUMBER, {"ranges": [[0, 1], [0, 1]]}, bins=1000), "ranges.1: 0 to 1 occurs twice; remove one"),
    (of("tree", {"size": 5}, {"ranges": [[3, 1]]}), "the values are in the order of the domain, and 3 comes after 1"),
    (of("tree", {"size": 5}, bins=8), "mechanism.bins: the values of the domain are the bins; remove bins"),
    (of("rr", {"size": 5}, {"ranges": [[0, 1]]}), "ranges: rr estimates no ranges; choose tree, or remove ranges"),
    ({"by": {}}, "by"),
    (by(os=["ios"]), "by.os"),
    (by(os=["ios", "ios"]), "by.os: label 'ios' occurs twice"),
    (by(version=["1.0", 1.1]), "by.version"),
    (by(os=["a=b", "c"]), "none of = , ;"),
    (by(a=[str(n) for n in range(64)], b=[str(n) for n in range(65)]), "4,160 slices, and 4,096 is"),
    (of("sample-one", RECORD, by(os=["a", "b"]), of=TWO), "by.os: an attribute of the record has this name"),
    # Strings.
    (of("bloom", STRINGS, hashes=65), "two strings differ in up to 130 bits, and there are 128; write 64 or fewer, 2"),
    (of("bloom", STRINGS, bits=12), "mechanism.bits: must be a multiple of 8, such as 16 (got 12)"),
    (of("bloom", STRINGS, cohorts=0), "mechanism.cohorts: must be 1 or more (got 0)"),
    (of("cohort-olh", STRINGS, cohorts=0), "mechanism.cohorts: must be 1 or more (got 0)"),
    (of("cohort-olh", STRINGS, buckets=65_536, cohorts=300), "more than 16,777,216 cells; write 256 or fewer (got"),
    (of("cohort-olh", {"strings": SPELLED}), "cohort-olh spells no strings; remove alphabet and pieces, or use"),
    (of("bloom", STRINGS, {"candidates": ["a", "123456789"]}), "the string has 9 bytes of UTF-8, and the longest has"),
    (of("bloom", STRINGS, {"candidates": ["a", "a"]}), "candidates: entry 2, 'a', occurs twice; remove one"),
    (of("bloom", STRINGS, {"candidates": [5]}), "candidates.0: must be text (YAML reads this as the number 5; write"),
    (of("bloom", STRINGS, {"candidates": [str(i) for i in range(100_001)]}), "has at most 100,000; ask about fewer"),
    (of("cohort-olh", STRINGS, {"candidates": [str(i) for i in range(8193)]}, cohorts=65_536), "has at most 8,192;"),
    (of("bloom", STRINGS, {"candidates": ["a"], "candidates_file": "a.csv"}), "the list or candidates_file; remove"),
    ({"candidates": ["a"]}, "candidates: only strings have candidates; remove it, or give domain: {strings: ...}"),
    (of("olh", STRINGS), "olh is for several values, and the domain is strings; choose one of bloom, cohort-olh,"),
    (of("set-ss", set_of(STRINGS)), "the domain is sets of strings; choose one of set-olh, prefixes"),
    (of("set-olh", set_of(STRINGS), cohorts=65_536, buckets=300), "than 16,777,216 cells; write 55924 or fewer"),
    (of("set-olh", set_of(STRINGS), lasting_epsilon=4.0), "devices keep no responses to sets of strings; remove it"),
    (of("set-olh", set_of({"strings": SPELLED})), "domain.set.of.strings: set-olh spells no strings"),
    (of("prefixes", set_of(STRINGS)), "domain.set.of.strings: prefixes needs to know how strings are spelled"),
    (of("prefixes", set_of({"strings": SPELLED}), buckets=3), "buckets: must be more than at_most, 3; write more"),
    # A search.
    (prefixes({"longest": 8}), "prefixes needs to know how strings are spelled; add alphabet, such as a-z0-9, or"),
    (prefixes({"longest": 8, "alphabet": ""}), "domain.strings.alphabet: no characters; write some, such as a-z0-9"),
    (prefixes({"longest": 8, "alphabet": "z-a"}), "the range 'z-a' runs backwards; write a - alone at the end"),
    (prefixes({"longest": 8, "alphabet": "aa"}), "domain.strings.alphabet: 'a' occurs twice; remove one"),
    (prefixes({"longest": 8, "alphabet": "a\u202e"}), "'\\u202e' is a character that nobody sees; remove it"),
    (prefixes({"longest": 8, "alphabet": "\x20-\U0010ffff"}), "' -\\U0010ffff' has more than 16,384 characters"),
    (prefixes({"longest": 8, "alphabet": "ab" * 4000}), "the text has more than 4,096 characters; write ranges, such"),
    (prefixes({"longest": 8, "pieces": ["ab", ""]}), "pieces: entry 2, '': it is empty; correct or remove it"),
    (prefixes({"longest": 8, "pieces": ["ab", "ab"]}), "domain.strings.pieces: 'ab' occurs twice; remove one"),
    (prefixes({"longest": 8, "pieces": ["abcdefghi"]}), "it has 9 bytes of UTF-8, and the longest string has 8;"),
    (prefixes({"longest": 64, "pieces": ["a" * 33]}), "it has 33 bytes of UTF-8, and 32 are the most; correct or"),
    (prefixes({"longest": 8, "alphabet": "ab", "pieces": ["bc"]}), "it has a character that is not in alphabet;"),
    (prefixes(step=5), "are 1,198,368 strings to score, and 131,072 is the most; write step: 4, or a smaller"),
    (prefixes(CAPITALS, step=1), "and 131,072 is the most; write fewer pieces, or a smaller discover.keep"),
    (prefixes(cohorts=65_536), "have 18,350,080 cells, and 16,777,216 is the most; write cohorts: 59918"),
    (prefixes(SPELLED | {"longest": 65_536}, cohorts=1, buckets=2, depth=256), "takes minutes; write fewer cohorts"),
    (prefixes(SPELLED, {"discover": {"most": 1024}}, cohorts=32_768, depth=1, buckets=2), "16,777,216 is the most;"),
    (prefixes(SPELLED, {"discover": {"keep": 0}}), "discover.keep: must be 1 or more (got 0)"),
    (prefixes(SPELLED, {"window": {"size": "1h", "early_every": "1m"}}), "prefixes looks for strings for seconds, so"),
    (of("rr", {"size": 3}, {"discover": {"keep": 3}}), "discover: rr finds no strings; remove it, or choose prefixes"),
]


@pytest.mark.parametrize(("keys", "text"), MISTAKES, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_each_mistake_is_one_line_with_the_remedy(keys: Keys, text: str) -> None:
    with pytest.raises((SpecError, RequestError)) as caught:
        build_protocol(build.spec(**keys))
    assert text in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
