"""Draws days.svg: a survey over four weeks, the estimates of each day with their intervals, and the truth.

``python docs/images/days.py`` writes it beside this file, or where its argument says.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from uldp.mechanisms import build_protocol
from uldp.schemas import CollectionSpec
from uldp.schemas.arrays import Floats

LABELS = ["never", "once", "often", "always"]
SPEC = {
    "collection": "survey",
    "version": 1,
    "domain": {"labels": LABELS},
    "sensitive": ["often", "always"],
    "mechanism": {"name": "urr", "epsilon": 1.0},
    "window": {"size": "1d"},
}
DAYS, USERS, RELEASE = 28, 4_000, 14
#: By label: the colour of its line, and where its name stands, in percent of users.
SHOWN = {"never": ("#555", 42), "often": ("#c60", 20), "always": ("#06c", 5)}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, MOST = 860, 340, 46, 120, 34, 34, 60


def truths() -> Floats:
    """The share of each answer on each day, of shape (days, answers): a release moves users from `never` to `often`."""
    before, after = np.array([0.5, 0.3, 0.15, 0.05]), np.array([0.4, 0.3, 0.23, 0.07])
    moved = np.clip((np.arange(DAYS) - RELEASE) / 5, 0, 1)[:, None]
    shares: Floats = before + (after - before) * moved
    return shares


def estimates(shares: Floats) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The shares of a day, and the ends of their intervals, as they are published."""
    protocol, rng = build_protocol(CollectionSpec.parse(SPEC)), np.random.default_rng(0)
    mechanism = protocol.mechanism
    for truth in shares:
        held = rng.choice(len(LABELS), USERS, p=truth)
        table = protocol.decoder.tables(mechanism.statistic(mechanism.perturb(held, rng)), USERS, "auto")[0]
        yield table.values, table.low, table.high


def path(values: Floats, days: Floats) -> str:
    """A line through values of shape (w,), shares of users, at days."""
    x = LEFT + (WIDTH - LEFT - RIGHT) * days / (DAYS - 1)
    y = TOP + (HEIGHT - TOP - BOTTOM) * (1 - 100 * values / MOST)
    return "M" + "L".join(f"{at:.0f} {height:.1f}" for at, height in zip(x, y, strict=True))


def picture() -> str:
    """The picture as SVG."""
    shares, days = truths(), np.arange(DAYS)
    values, low, high = (np.array(each) for each in zip(*estimates(shares), strict=True))

    def at(day: float, percent: float) -> str:
        x, y = path(np.array([percent / 100]), np.array([day]))[1:].split()
        return f'x="{x}" y="{y}"'

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for percent in range(0, MOST + 1, 20):
        line = path(np.full(2, percent / 100), np.array([0, DAYS - 1]))
        parts += [
            f'<path d="{line}" stroke="#ddd"/>',
            f'<text {at(-0.3, percent - 1)} text-anchor="end">{percent} %</text>',
        ]
    release = path(np.array([0, MOST / 100]), np.array([RELEASE, RELEASE]))
    parts += [f'<path d="{release}" stroke="#999"/>', f"<text {at(RELEASE + 0.2, MOST - 2)}>a release</text>"]
    parts += [f'<text {at(day, -6)} text-anchor="middle">day {day + 1}</text>' for day in range(0, DAYS, 9)]
    for label, (colour, height) in SHOWN.items():
        i = LABELS.index(label)
        band = path(np.append(high[:, i], low[::-1, i]), np.append(days, days[::-1]))
        parts += [
            f'<path d="{band}Z" fill="{colour}" fill-opacity=".2"/>',
            f'<path d="{path(values[:, i], days)}" stroke="{colour}" stroke-width="2" fill="none"/>',
            f'<path d="{path(shares[:, i], days)}" stroke="#000" stroke-dasharray="4 4" fill="none"/>',
            f'<text {at(DAYS - 0.6, height)} fill="{colour}">{label}</text>',
        ]
    parts.append(f'<text x="{LEFT}" y="20">lines: estimates; bands: 95 % intervals; dashed: the truth</text>')
    body = "\n".join(parts)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="14">\n{body}\n</svg>\n'


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    file.write_text(picture(), encoding="utf-8")
