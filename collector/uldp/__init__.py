"""Statistics of devices under local differential privacy. This module is the face of the packages below it.

    >>> import uldp
    >>> oue = uldp.protocol("oue", size=100, epsilon=1.0)
    >>> oue.simulate([7] * 5000, seed=1).estimate().values.argmax()
    np.int64(7)

``protocol`` and ``compare`` are for experiments, ``Device`` for programs on devices, ``Collector`` for counting their
reports in one process. Jobs on Beam are in ``uldp.transforms`` and ``uldp.pipelines``. What a user can mend is a
``UldpError``.
"""

import lazy_loader

# Each package of this project is in a folder of its own, and so is what others install below this name. Tools that look
# for modules know this form.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)

# What is asked for is imported then: devices need little of this.
_of_stub, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # takes longer than all else here

        return version("uldp-stream")
    return _of_stub(name)
