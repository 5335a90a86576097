"""The theta of uRAP with the least error."""

import math


def best_theta(epsilon: float, sensitive: int, size: int) -> float:
    """Return the theta of uRAP with the least ``expected_l1``, of the multiples of 1/256 inside (0, 1)."""
    return min((step / 256 for step in range(1, 256)), key=lambda theta: expected_l1(epsilon, sensitive, size, theta))


def expected_l1(epsilon: float, sensitive: int, size: int, theta: float) -> float:
    """Return the l1 error of uRAP's unbiased estimate, equation (17), over k equal shares, times sqrt(pi n / 2).

    It is the sum of the standard deviations of r-hat; ``Channel.expected_l1`` has it for other shares.
    """
    odds = math.exp(epsilon)
    d1, p = theta / ((1 - theta) * odds + theta), theta * (1 - 1 / odds)
    m = d1 + (theta - d1) / size
    return sensitive * math.sqrt(m * (1 - m)) / (theta - d1) + (size - sensitive) * math.sqrt(
        (1 - p / size) / (p * size)
    )
