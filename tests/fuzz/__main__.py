"""Search for bytes that break a reader: ``python -m tests.fuzz decoder|container [-runs=N] FOUND SEEDS``.

Arguments behind the reader's name are libFuzzer's. An input that fails is written to a file, and its exception is
printed.
"""

import resource
import sys
import warnings
from collections.abc import Callable

import atheris

with atheris.instrument_imports(include=["uldp.schemas", "uldp.mechanisms", "uldp.collector"]):
    from tests.fuzz import container, decoder

#: To trace memory takes ten times as long as to decode, so it is done once in so many inputs.
TRACE_EVERY = 1024
#: An input that takes more of the address space than this fails, traced or not.
SPARE_MEMORY = 1 << 30


class Decoder:
    """Checks one input after the other, and counts them."""

    def __init__(self) -> None:
        self.inputs = self.messages = 0

    def __call__(self, data: bytes) -> None:
        """Check one input."""
        self.inputs += 1
        self.messages += decoder.check(data)
        if self.inputs % TRACE_EVERY == 0:
            arrivals = decoder.messages(data)
            taken, allowed = decoder.peak(arrivals), decoder.bound(arrivals)
            assert taken <= allowed, f"{taken} bytes of memory, more than {allowed}"
        if self.inputs.bit_count() == 1:  # as often as libFuzzer says how far it is; it ends without a last word
            print(f"{self.inputs} inputs of {self.messages} messages", file=sys.stderr)  # noqa: T201


class Containers:
    """Checks one container after the other, and counts those that are read."""

    def __init__(self) -> None:
        self.inputs = self.read = 0

    def __call__(self, data: bytes) -> None:
        """Check one input."""
        self.inputs += 1
        self.read += container.check(data)
        if self.inputs.bit_count() == 1:
            print(f"{self.inputs} containers, {self.read} of them read", file=sys.stderr)  # noqa: T201


READERS: dict[str, Callable[[], Callable[[bytes], None]]] = {"decoder": Decoder, "container": Containers}


def main() -> None:
    """Search until libFuzzer's limits end it."""
    warnings.simplefilter("error")
    reader = READERS[sys.argv.pop(1)]()
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, resource.RLIM_INFINITY))
    atheris.Setup(sys.argv, reader)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
