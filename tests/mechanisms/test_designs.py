"""The designs whose blocks `ubd` and `uhr` report: which there are, and the law of their numbers."""

import pytest

from uldp.mechanisms.kernels.designs import Design, designs, prime_power


def test_blocks_hold_each_pair_of_points_equally_often() -> None:
    """Each point is with V - 1 others: w (w - 1) = lambda (V - 1)."""
    found = designs(3, 600)
    assert {design.power for design in found} == {0, 2, 4}
    assert [d.block * (d.block - 1) for d in found] == [d.pairs * (d.points - 1) for d in found]


@pytest.mark.parametrize("size", [6, 7])
def test_a_design_has_at_most_as_many_points_as_there_are_symbols(size: int) -> None:
    assert (Design(11, 5, 2, power=2) in designs(4, size)) == (4 + size >= 11)


def test_a_prime_power_has_one_prime() -> None:
    powers = {number: found for number in range(1, 30) if (found := prime_power(number))}
    primes = {number: (number, 1) for number in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)}
    assert powers == primes | {4: (2, 2), 8: (2, 3), 9: (3, 2), 16: (2, 4), 25: (5, 2), 27: (3, 3)}
