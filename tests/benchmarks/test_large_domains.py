"""What large domains cost, on small inputs; and the libraries' estimates, where they are installed."""

import numpy as np
import pytest

from benchmarks import large_domains, peer_estimates
from benchmarks.workloads import SIZE


def test_each_mechanism_is_counted_and_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_domains, "REPORTS", 100_000)
    monkeypatch.setattr(large_domains, "HASHED", 10_000)
    monkeypatch.setattr(large_domains, "HASHED_BY_PEERS", 10)
    monkeypatch.setattr(large_domains, "REPEAT", 1)
    rows = list(large_domains.rows(quick=True))
    assert [row.label for row in rows[:5]] == list(large_domains.MECHANISMS)
    assert rows[0].remark == "1.00 times the time of urr"
    peers = [row for row in rows if row.label.endswith(("pure-ldp", "multi-freq-ldpy"))]
    assert [row.part for row in rows if row not in peers] == ["counting"] * 6 + ["testing"] * 7 + ["decoding"] * 3
    assert all(row.seconds for row in rows)


def test_the_libraries_are_timed_beside_uldp_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pure_ldp", "multi_freq_ldpy", "xxhash"):
        pytest.importorskip(library)
    monkeypatch.setattr(large_domains, "HASHED_BY_PEERS", 10)
    servers = large_domains.servers_of_peers(np.random.default_rng(1))
    assert [len(server()) for server in servers.values()] == [SIZE] * 2


def test_the_libraries_estimate_as_uldp_stream_does() -> None:
    """The extra ``bench`` has them; the environment of most tests does not."""
    for library in ("pure_ldp", "multi_freq_ldpy", "xxhash"):
        pytest.importorskip(library)
    assert len({protocol for protocol, _, _ in peer_estimates.differences()}) >= 12
