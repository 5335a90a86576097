"""What large domains cost, on small inputs."""

import pytest

from benchmarks import large_domains


def test_each_mechanism_is_counted_and_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_domains, "REPORTS", 100_000)
    monkeypatch.setattr(large_domains, "HASHED", 10_000)
    monkeypatch.setattr(large_domains, "REPEAT", 1)
    rows = list(large_domains.rows(quick=True))
    assert [row.label for row in rows[:4]] == list(large_domains.MECHANISMS)
    assert rows[0].remark == "1.00 times the time of urr"
    assert [row.part for row in rows] == ["counting"] * 5 + ["decoding"] * 3
    assert all(row.seconds for row in rows)
