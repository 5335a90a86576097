"""Keeps Beam's local runner from pickling each step for each bundle, to find steps that cannot be pickled.

``BundleBasedDirectRunner`` gives each bundle a copy of the step's ``DoFn`` that it has pickled and read back, which
takes half a millisecond. It runs one bundle at a time. What a ``DoFn`` changes, it must make in ``setup`` or
``start_bundle``, because its copies share what it was made with.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from uldp.transforms.internals import transform_evaluator


@contextmanager
def copied_steps() -> Iterator[None]:
    """While the context lasts, jobs of this process on Beam's local runner copy a step by its attributes."""
    evaluator = transform_evaluator()
    pickler = evaluator.pickler
    evaluator.pickler = SimpleNamespace(roundtrip=copy.copy)
    try:
        yield
    finally:
        evaluator.pickler = pickler
