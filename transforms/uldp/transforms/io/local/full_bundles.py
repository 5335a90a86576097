"""Keeps Beam's local runner from running steps on bundles without elements, which is most of what an idle stream costs.

``BundleBasedDirectRunner`` hands on each output of a step, also an empty one, and so runs all steps behind it. Its
watermarks take no notice of empty bundles, and a ``DoFn`` of this project does nothing with one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uldp.transforms.internals import evaluation_context


@contextmanager
def full_bundles() -> Iterator[None]:
    """While the context lasts, jobs of this process on Beam's local runner hand on bundles that have elements."""
    runner = evaluation_context()
    handle = runner.handle_result

    def handled(context: Any, bundle: Any, timers: Any, result: Any) -> Any:
        return [each for each in handle(context, bundle, timers, result) if each.has_elements()]

    runner.handle_result = handled
    try:
        yield
    finally:
        runner.handle_result = handle
