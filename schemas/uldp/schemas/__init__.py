"""The data on the wire and on disk: Avro schemas, framing, typed records, collection specs.

This package imports none of the other packages.
"""

import lazy_loader

# What is asked for is imported then.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
