"""Search for bytes that break the decoder: ``python -m fuzz [-runs=N] [-max_total_time=SECONDS] FOUND SEEDS``.

Arguments are libFuzzer's. An input that fails is written to a file, and its exception is printed.
"""

import resource
import sys
import warnings

import atheris

with atheris.instrument_imports(include=["uldp.schemas", "uldp.mechanisms", "uldp.collector"]):
    from fuzz.decoder import bound, check, messages, peak

#: To trace memory takes ten times as long as to decode, so it is done once in so many inputs.
TRACE_EVERY = 1024
#: An input that takes more of the address space than this fails, traced or not.
SPARE_MEMORY = 1 << 30


class Search:
    """Checks one input after the other, and counts them."""

    def __init__(self) -> None:
        self.inputs = self.messages = 0

    def __call__(self, data: bytes) -> None:
        """Check one input."""
        self.inputs += 1
        self.messages += check(data)
        if self.inputs % TRACE_EVERY == 0:
            arrivals = messages(data)
            taken, allowed = peak(arrivals), bound(arrivals)
            assert taken <= allowed, f"{taken} bytes of memory, more than {allowed}"
        if self.inputs.bit_count() == 1:  # as often as libFuzzer says how far it is; it ends without a last word
            print(f"{self.inputs} inputs of {self.messages} messages", file=sys.stderr)  # noqa: T201


def main() -> None:
    """Search until libFuzzer's limits end it."""
    warnings.simplefilter("error")
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_MEMORY, resource.RLIM_INFINITY))
    atheris.Setup(sys.argv, Search())
    atheris.Fuzz()


if __name__ == "__main__":
    main()
