"""Turn the bytes of reports into counts: decode, validate, deduplicate, and count or reject each report.

This package uses NumPy and never Beam, so scripts can use it and fuzz tests can run it alone. Of this project it
imports only ``uldp.schemas`` and ``uldp.mechanisms``.
"""

import lazy_loader

# What is asked for is imported then: an experiment needs a third of the modules, a device fewer.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
