"""Thin Beam transforms: decode, deduplicate, count, window, estimate; ``io`` reads and writes.

Each module has as little logic as possible: first a public pure function, then a PTransform over it. Of our packages,
this one imports only ``uldp.schemas``, ``uldp.mechanisms`` and ``uldp.collector``.
"""

import lazy_loader

# What is asked for is imported then: Beam takes a second to import, and not every module here needs it.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
