"""Draws gain.svg: the error of shares of check-ins under LDP, ULDP and PUM, as in the ULDP paper's figure 5.

``python docs/images/gain.py`` writes it beside this file, or where its argument says. The population is that of
``examples/manhattan``, 625 cells of which 15 are sensitive, and the number of users that of the paper, Murakami &
Kawamoto (USENIX Security 2019), section 6.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uldp.mechanisms import build_protocol
from uldp.mechanisms.decoders.pure import PureDecoder
from uldp.pipelines.simulation.truth import Truth
from uldp.schemas import CollectionSpec
from uldp.schemas.arrays import Floats
from uldp.schemas.specs.specfile import read_spec

EXAMPLE = Path(__file__).parents[2] / "examples" / "manhattan"
USERS, WINDOWS = 179_527, 5
EPSILONS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, float(np.log(625)))
_ALL: Mapping[str, Any] = {"sensitive": "all", "tags": []}
#: By the name of a line: the keys in place of those of the example, its colour, and where its name stands: ε, and l1.
LINES: Mapping[str, tuple[Mapping[str, Any], str, str, tuple[float, float]]] = {
    "LDP: randomized response": ({"mechanism": {"name": "rr"}} | _ALL, "#888", "2 5", (2.3, 1.1)),
    "LDP: OUE": ({"mechanism": {"name": "oue"}} | _ALL, "#c60", "8 4", (1.1, 0.9)),
    "ULDP and PUM: uRR": ({"mechanism": {"name": "urr"}}, "#06c", "", (0.3, 0.38)),
    "ULDP and PUM: uRAP": ({"mechanism": {"name": "urap"}}, "#093", "12 3 3 3", (0.3, 0.1)),
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM, MOST = 860, 340, 60, 20, 34, 46, 1.4


def error(keys: Mapping[str, Any], epsilon: float) -> float:
    """The mean l1 distance between the shares that are published of windows and those of all users."""
    own = {"mechanism": keys["mechanism"] | {"epsilon": epsilon}, "budget": None, "estimator": "auto"}
    spec = CollectionSpec.parse({**read_spec(EXAMPLE / "spec.yaml"), **keys, **own}, base=EXAMPLE)
    whole = CollectionSpec.load(EXAMPLE / "spec.yaml")
    truth = Truth.load(EXAMPLE / "truth.csv", whole)
    decoder, rng = build_protocol(spec).decoder, np.random.default_rng(0)
    assert isinstance(decoder, PureDecoder)
    held = truth.intermediate() if spec.tags else truth.distribution()
    windows = (decoder.tables(decoder.draw_counts(held, USERS, rng), USERS, "auto")[0] for _ in range(WINDOWS))
    return float(np.mean([np.abs(table.values - truth.distribution()).sum() for table in windows]))


def at(epsilon: float, l1: float) -> tuple[float, float]:
    """Where a point is drawn; ε is on a scale of logarithms."""
    first, last = np.log(EPSILONS[0]), np.log(EPSILONS[-1])
    x = LEFT + (WIDTH - LEFT - RIGHT) * (np.log(epsilon) - first) / (last - first)
    return float(x), TOP + (HEIGHT - TOP - BOTTOM) * (1 - l1 / MOST)


def path(points: Floats) -> str:
    """A line through points, of shape (points, 2): ε and l1."""
    return "M" + "L".join(f"{x:.0f} {y:.1f}" for x, y in (at(*point) for point in points.tolist()))


def picture() -> str:
    """The picture as SVG."""
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    for l1 in (0.0, 0.4, 0.8, 1.2):
        (x, y), line = at(EPSILONS[0], l1), path(np.array([[EPSILONS[0], l1], [EPSILONS[-1], l1]]))
        parts += [
            f'<path d="{line}" stroke="#ddd"/>',
            f'<text x="{x - 8:.0f}" y="{y + 4:.1f}" text-anchor="end">{l1:g}</text>',
        ]
    for epsilon in (0.25, 0.5, 1, 2, 4):
        x, y = at(epsilon, 0)
        parts.append(f'<text x="{x:.0f}" y="{y + 18:.1f}" text-anchor="middle">{epsilon:g}</text>')
    parts.append(f'<text x="{WIDTH // 2}" y="{HEIGHT - 8}" text-anchor="middle">ε of a report</text>')
    parts.append(f'<text x="8" y="20">l1 error of the shares of 625 cells, {USERS:,} users</text>')
    for name, (keys, colour, dashes, label) in LINES.items():
        line = path(np.array([[epsilon, error(keys, epsilon)] for epsilon in EPSILONS]))
        x, y = at(*label)
        parts += [
            f'<path d="{line}" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dashes}" fill="none"/>',
            f'<text x="{x:.0f}" y="{y:.1f}" fill="{colour}">{name}</text>',
        ]
    body = "\n".join(parts)
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif" font-size="14">\n{body}\n</svg>\n'


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_suffix(".svg")
    file.write_text(picture(), encoding="utf-8")
