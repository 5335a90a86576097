"""Sets and blocks of sensitive values: docs/client/designs.md."""

from itertools import count
from math import ceil, exp, isqrt
from secrets import randbelow


def times(a: list[int], b: list[int], modulus: list[int], p: int) -> list[int]:
    """Multiply two polynomials over the integers modulo p, modulo a third one."""
    product = [0] * (2 * len(modulus) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    for at in range(len(product) - 1, len(modulus) - 1, -1):
        for j, c in enumerate(modulus):
            product[at - len(modulus) + j] -= product[at] * c
    return [number % p for number in product[: len(modulus)]]


def power(a: list[int], exponent: int, modulus: list[int], p: int) -> list[int]:
    """Raise a polynomial to a power, as ``times`` multiplies."""
    result = [1] + [0] * (len(modulus) - 1)
    for bit in bin(exponent)[2:]:
        result = times(result, result, modulus, p)
        result = times(result, a, modulus, p) if bit == "1" else result
    return result


def primes_of(number: int) -> list[int]:
    """Return the prime factors of a number, each once."""
    found = [p for p in range(2, isqrt(number) + 1) if number % p == 0 and all(p % q for q in range(2, isqrt(p) + 1))]
    for p in found:
        while number % p == 0:
            number //= p
    return found + [number] * (number > 1)


def singer(g: int, m: int) -> list[int]:
    """Return the difference set D of the design of g and m."""
    p = primes_of(g)[0]
    degree = m * next(e for e in count(1) if p**e == g)
    order, one, x = p**degree - 1, [1] + [0] * (degree - 1), [0, 1] + [0] * (degree - 2)
    for number in count(1):  # x^degree + the digits of number in base p
        modulus = [number // p**k % p for k in range(degree)]
        if not modulus[0] or power(x, order, modulus, p) != one:
            continue
        if all(power(x, order // q, modulus, p) != one for q in primes_of(order)):
            break
    found, a = [], one
    for i in range((g**m - 1) // (g - 1)):
        conjugates = [power(a, g**j, modulus, p) for j in range(m)]
        if not any(sum(column) % p for column in zip(*conjugates, strict=True)):  # the trace is 0
            found.append(i)
        a = times(a, x, modulus, p)
    return found


def uhr(i: int | None, own: int, v: int, epsilon: float) -> int:
    """Report the symbol at position i of Z_S, or number ``own`` of the others."""
    columns = 1 << v.bit_length()
    noisy = randbelow(2**53) < ceil(2**53 * 2 / (exp(epsilon) + 1))
    noise, column, row = randbelow(columns), randbelow(columns), 1 if i is None else i + 1
    column ^= (row & column).bit_count() % 2 * (row & -row)  # flips the lowest one of the row
    return noise if noisy else columns + own if i is None else column


def ubd(i: int | None, own: int, D: list[int], V: int, epsilon: float) -> int:
    """Report the symbol at position i of Z_S, or number ``own`` of the others, by a difference set D modulo V."""
    noisy = randbelow(2**53) < ceil(2**53 * V / (len(D) * (exp(epsilon) - 1) + V))
    noise, block = randbelow(V), ((i or 0) - D[randbelow(len(D))]) % V
    return noise if noisy else V + own if i is None else block
