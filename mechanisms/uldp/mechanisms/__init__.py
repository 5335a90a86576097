"""The mathematics: how a device perturbs values, which symbols a report supports, and how counts give estimates.

This package uses NumPy and special functions, never Beam. Of this project it imports only ``uldp.schemas``.
"""

import lazy_loader

# What is asked for is imported then: an experiment needs a third of the modules, a device fewer.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
