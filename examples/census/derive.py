"""Derive ``labels.csv`` and ``truth.csv`` from the Chow-Liu model that README.md describes.

    python examples/census/derive.py census400_chowliu.npz

The model file holds ``p`` and ``sens``, both of shape (400,): the distribution, and which categories are sensitive.
The same input gives the same bytes. The sensitive labels are printed; ``spec.yaml`` lists them.
"""

import argparse
import csv
import itertools
from pathlib import Path

import numpy as np

PERSONS = 2_458_285

# Exact counts of persons per category. They are also what shows the order of the axes of ``p``.
MARGINALS = {
    "age": [32169, 441248, 242511, 370955, 404535, 312825, 331258, 322784],
    "income": [1237403, 564755, 376031, 232422, 47674],
    "marital": [1095567, 145497, 153745, 41044, 1022432],
    "sex": [1191601, 1266684],
}


def main() -> None:
    """Read, check the marginals, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--to", type=Path, default=Path(__file__).parent, metavar="DIRECTORY")
    arguments = parser.parse_args()

    shape = tuple(map(len, MARGINALS.values()))
    with np.load(arguments.model, allow_pickle=False) as model:
        persons = (model["p"] * PERSONS).reshape(shape)
        sensitive = model["sens"].ravel()
    for axis, (name, counts) in enumerate(MARGINALS.items()):
        others = tuple(other for other in range(len(shape)) if other != axis)
        if not np.allclose(persons.sum(axis=others), counts, rtol=0, atol=1e-6):
            parser.error(f"axis {axis} of the model does not have the counts of {name}; is this the source?")

    labels = [
        "/".join(f"{name}{code}" for name, code in zip(MARGINALS, codes, strict=True))
        for codes in itertools.product(*map(range, shape))
    ]
    (arguments.to / "labels.csv").write_text("".join(f"{label}\n" for label in ("value", *labels)), encoding="utf-8")
    with (arguments.to / "truth.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("value", "tag", "weight"))
        writer.writerows(
            (label, "", f"{weight:.4f}") for label, weight in zip(labels, persons.ravel(), strict=True) if weight > 0
        )
    print("sensitive:", *itertools.compress(labels, sensitive))


if __name__ == "__main__":
    main()
