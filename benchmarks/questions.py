"""How often intervals of sums of values, and of differences between two windows, cover the truth.

    python -m benchmarks.questions --windows 2000

There are 20 values, whose shares fall as 1, 1/2, 1/3, ..., and in the later window as the roots of these. With a tag, a
third of the users of the first five values hide them, and the background is 1,000 draws from these users, other ones in
each window. A sum is of 3 values or of 10; a difference is of each value, of those without noise, and of the sum of 3.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.options import read_options
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.mechanisms.questions import Groups, Period, Shares, Span, Version, compare, rows_of, shares_of
from uldp.mechanisms.questions.sums import sum_ends
from uldp.mechanisms.tags.pum import Pum
from uldp.schemas.arrays import Floats
from uldp.schemas.pane import Accounting
from uldp.schemas.specs.collection import CollectionSpec

VALUES, WINDOWS, STRENGTH = 20, 2000, 1000
MECHANISMS = ("rr", "oue", "ss", "urr", "urap", "urr with a tag")
SIZES = (150, 1_500, 10_000)
#: The first ten values are sensitive, where not all are.
_MEMBERS = np.zeros((VALUES, 2))
_MEMBERS[[0, 7, 14], 0] = 1
_MEMBERS[::2, 1] = 1
#: The users whom the tag hides.
_HIDDEN = np.where(np.arange(VALUES) < 5, 1 / 3, 0.0)
#: What is measured.
NAMES = ("sum of 3", "sum of 10", "difference", "without noise", "difference of sums")


def measure(name: str, n: int, windows: int, seed: int = 1) -> Floats:
    """Return the coverage of each of ``NAMES`` for a mechanism, with n reports in a window; NaN of what it has none."""
    rng, version = np.random.default_rng(seed), _version(name)
    tags = bool(version.spec.tags)
    before, after = 1 / np.arange(1, VALUES + 1), np.arange(1, VALUES + 1) ** -0.5
    first, later = before / before.sum(), after / after.sum()
    groups = Groups(("three",), _MEMBERS[:, :1])
    visible = 1 - _HIDDEN * tags
    change = [*(visible * (later - first)), *([_HIDDEN @ (later - first)] if tags else [])]
    exact = [at for at in range(VALUES) if not version.spec.sensitive_mask[at]]
    of_sum = float(_MEMBERS[:, 0] @ (visible * (later - first)))
    covered = np.zeros(len(NAMES))
    for _ in range(windows):
        one, other = (_shares(version, p, n, rng) for p in (first, later))
        _, _, low, high = sum_ends(one, _MEMBERS)
        truth = first @ _MEMBERS
        differences = list(rows_of(compare(one, other)))[: len(change)]
        held = [each.low <= by <= each.high for each, by in zip(differences, change, strict=True)]
        (summed,) = rows_of(compare(one, other, groups))
        assert summed.low is not None
        assert summed.high is not None
        of_exact = np.mean([held[at] for at in exact]) if exact else np.nan
        covered += [*((low <= truth) & (truth <= high)), np.mean(held), of_exact, summed.low <= of_sum <= summed.high]
    return covered / windows


def _version(name: str) -> Version:
    mechanism, *tagged = name.split(" with ")
    keys: dict[str, Any] = {
        "collection": "c",
        "version": 1,
        "domain": {"size": VALUES},
        "mechanism": {"name": mechanism, "epsilon": 1},
        "window": {"size": "1h"},
    }
    if mechanism in {"urr", "urap"}:
        keys["sensitive"] = list(range(VALUES // 2))
    return Version(CollectionSpec.parse(keys | ({"tags": [{"name": "home"}]} if tagged else {})))


def _shares(version: Version, p: Floats, n: int, rng: Generator) -> Shares:
    """Draw a window, and the background of its tag."""
    decoder = version.decoder
    assert isinstance(decoder, PureDecoder)
    hidden = p * _HIDDEN
    r = np.append(p - hidden, hidden.sum()) if version.spec.tags else p
    cells = decoder.draw_counts(r, n, rng)
    span = Span(version, Period(0, 3_600_000, "window"), cells, (n,), (0,), Accounting(n, n), ())
    (shares,) = shares_of(span)
    if not version.spec.tags:
        return shares
    draws = rng.multinomial(STRENGTH, hidden / hidden.sum())
    assert isinstance(shares.pum, Pum)
    known = replace(shares.pum, background=draws[np.newaxis] / STRENGTH, strength=np.array([float(STRENGTH)]))
    return replace(shares, pum=known)


def rows(windows: int) -> Iterator[tuple[str, int, Floats]]:
    """Measure each mechanism at each number of reports."""
    for name in MECHANISMS:
        for n in SIZES:
            yield name, n, measure(name, n, windows)


def main() -> None:
    """Print a Markdown table."""
    windows = read_options(__doc__, windows=WINDOWS).windows
    print(f"| mechanism | n | {' | '.join(NAMES)} |")
    print(f"| --- | --- | {' | '.join('---' for _ in NAMES)} |")
    for name, n, covered in rows(windows):
        figures = ["" if np.isnan(each) else f"{each:.3f}" for each in covered]
        print(f"| {name} | {n:,} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
