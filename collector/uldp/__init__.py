"""Statistics of devices under local differential privacy. This module is the face of the packages below it.

    >>> import uldp
    >>> oue = uldp.protocol("oue", size=100, epsilon=1.0)
    >>> oue.simulate([7] * 5000, seed=1).estimate().values.argmax()
    np.int64(7)

``protocol`` and ``compare`` are for experiments, ``Device`` for programs on devices, ``Collector`` for counting their
reports in one process. Jobs on Beam are in ``uldp.transforms`` and ``uldp.pipelines``. What a user can mend is a
``UldpError``.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    __version__: str
    from uldp.collector import Collector as Collector
    from uldp.collector.experiment import Expected as Expected
    from uldp.collector.experiment import Protocol as Protocol
    from uldp.collector.experiment import Sample as Sample
    from uldp.collector.experiment import compare as compare
    from uldp.collector.experiment import protocol as protocol
    from uldp.mechanisms import BudgetExceededError as BudgetExceededError
    from uldp.mechanisms import Device as Device
    from uldp.schemas import CollectionSpec as CollectionSpec
    from uldp.schemas import SpecError as SpecError
    from uldp.schemas import UldpError as UldpError

# Each package of this project is in a folder of its own, and so is what others install below this name. Tools that look
# for modules know this form, and take a folder with a stub for the whole.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)

# What is asked for is imported then: devices need little of this.
_attribute, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "collector": ["Collector"],
        "collector.experiment": ["Expected", "Protocol", "Sample", "compare", "protocol"],
        "mechanisms": ["BudgetExceededError", "Device"],
        "schemas": ["CollectionSpec", "SpecError", "UldpError"],
    },
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # takes longer than all else here

        return version("uldp-stream")
    return _attribute(name)
