"""A logistic regression by private gradients, beside one by true ones: docs/gradients.md."""

import numpy as np
from scipy.linalg import hadamard

from uldp.mechanisms import Held, build_protocol
from uldp.schemas import CollectionSpec
from uldp.schemas.arrays import Floats, Mask

D, USERS, ROUNDS, EPSILON = 32, 20_000, 12, 4.0
rng = np.random.default_rng(1)
# Public, and the same for all devices and rounds.
rotation = hadamard(D) * rng.choice([-1, 1], D) / np.sqrt(D)
REACH = 2.75 / np.sqrt(D)
truth = np.zeros(D)
truth[:4] = 20, -15, 10, 10


def spec_of(round_number: int) -> CollectionSpec:
    """Return the spec of a round: a version."""
    names = [f"g{number}" for number in range(D)]
    return CollectionSpec.parse(
        {
            "collection": "gradient",
            "version": round_number,
            "domain": {"numbers": {"names": names, "low": -REACH, "high": REACH}},
            "mechanism": {"name": "hybrid", "epsilon": EPSILON},
            "window": {"size": "1d"},
        }
    )


def people(number: int) -> tuple[Floats, Mask]:
    """Draw what users hold: features, and a yes or no."""
    x = rng.normal(size=(number, D)) / np.sqrt(D)
    return x, rng.random(number) < 1 / (1 + np.exp(-x @ truth))


def gradients(x: Floats, y: Mask, weights: Floats) -> Floats:
    """Return what each device computes: the gradient of its loss, cut to the length 1, and rotated."""
    own: Floats = (1 / (1 + np.exp(-x @ weights)) - y)[:, np.newaxis] * x
    rotated: Floats = own / np.maximum(np.linalg.norm(own, axis=1), 1)[:, np.newaxis] @ rotation.T
    return rotated


def loss(weights: Floats, x: Floats, y: Mask) -> float:
    """Return the mean loss of users."""
    p = 1 / (1 + np.exp(-x @ weights))
    return -float(np.mean(np.log(np.where(y, p, 1 - p))))


private, noiseless, test = np.zeros(D), np.zeros(D), people(20_000)
for number in range(1, ROUNDS + 1):
    x, y = people(USERS)
    # Each device: Device(spec, {}).report({"g0": ..., "g1": ...}, time). Here all devices of a round at once.
    protocol = build_protocol(spec_of(number))
    columns = [Held(column, np.full(USERS, -1)) for column in gradients(x, y, private).T]
    cells = protocol.mechanism.statistic(protocol.perturb(columns, rng))
    step = 60 / np.sqrt(1 + number / 3)
    private = private - step * protocol.decoder.linear(cells, USERS).values @ rotation
    noiseless = noiseless - step * gradients(x, y, noiseless).mean(axis=0) @ rotation

start, of_private, of_noiseless = (loss(weights, *test) for weights in (np.zeros(D), private, noiseless))
print(f"loss {start:.2f} without a model, {of_private:.2f} by private gradients, {of_noiseless:.2f} by true ones")
assert of_private < of_noiseless + 0.05
