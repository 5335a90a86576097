"""Whole pipelines over the transforms, and the command line that runs and reads them."""

import lazy_loader

# The command line imports this package for each command, and few read results.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
