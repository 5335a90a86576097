"""Thin Beam transforms: decode, deduplicate, count, window, estimate; ``io`` reads and writes.

A module has a public pure function first, then a PTransform over it, which has as little logic as possible.
"""

import lazy_loader

# What is asked for is imported then: Beam takes a second to import, and not every module here needs it.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
