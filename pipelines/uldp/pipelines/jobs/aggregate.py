"""``Aggregate`` as the commands run it: in workers of its own, perhaps on a simulated stream."""

from dataclasses import dataclass

from uldp.collector.shared_specs import SharedSpecs
from uldp.transforms.aggregate import Aggregate


@dataclass
class JobAggregate(Aggregate):
    """``Aggregate`` in workers that run nothing else, so that each may freeze its heap."""

    simulated_clock: bool = False  # whether publish times are simulated: complete windows may end in the future
    keep_ids: bool = False  # whether the ids of counted reports are an output

    def __post_init__(self) -> None:
        super().__post_init__()
        self._freeze_heap = True
        self._simulated_clock = self.simulated_clock
        self._keep_ids = self.keep_ids

    @property
    def shared(self) -> SharedSpecs:
        """The specs as its steps hold them, for further steps."""
        return self._shared
