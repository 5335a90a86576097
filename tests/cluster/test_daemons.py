"""Ports for daemons."""

import socket
from pathlib import Path

import pytest

from tests.cluster.daemons import PORTS, free_port

LENT = Path("/proc/sys/net/ipv4/ip_local_port_range")


def test_a_port_is_not_handed_out_twice() -> None:
    ports = [free_port() for _ in range(100)]
    assert len(set(ports)) == 100


def test_a_port_that_is_taken_is_not_handed_out() -> None:
    with socket.socket() as taken:
        port = free_port()
        taken.bind(("127.0.0.1", port))
        assert port not in {free_port() for _ in range(PORTS)}


@pytest.mark.skipif(not LENT.exists(), reason="Linux says here which ports it lends")
def test_no_connection_takes_the_port_of_who_is_away() -> None:
    assert free_port() < int(LENT.read_text(encoding="ascii").split()[0])
