"""Fixed windows of a bounded job: the runner sums blocks of windows, by the start of the block.

A runner of Beam keeps a timer for each window of a key, and the local runner looks through all of them for each window:
10,000 windows of one key take 40 times as long as 100. A bounded job needs none of these timers, because no window
fires before all input is read. So the runner groups by key and block in one global window, and the windows get their
times when their panes are sealed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import apache_beam as beam
from apache_beam.coders import Coder
from apache_beam.pvalue import PCollection

from uldp.collector.blocks import PartialBlock
from uldp.schemas.specs.collection import WindowSpec
from uldp.transforms.coders import PartialBlockCoder
from uldp.transforms.count import BlockKey, KeyedBlock
from uldp.transforms.internals import Given, WindowedValue
from uldp.transforms.windows import at_time, window_into

BlockPart = tuple[BlockKey, PartialBlock]


@dataclass
class SumFixedWindows(beam.PTransform[PCollection[KeyedBlock], PCollection[KeyedBlock]]):
    """Sum blocks of a bounded collection, whose slices are the windows. The result holds each window once.

    Each element of the result is in the window in which its block begins.
    """

    window: WindowSpec

    def expand(self, blocks: PCollection[KeyedBlock]) -> PCollection[KeyedBlock]:
        """Sum by block, and then put each sum into a window."""
        sums: PCollection[KeyedBlock] = (
            blocks
            | "KeyByBlock" >> beam.Map(_by_block).with_output_types(BlockPart)
            | "SumBlocks" >> beam.CombinePerKey(SumBlocks())  # type: ignore[no-untyped-call]
            | "AtBlock" >> beam.Map(_at_block).with_output_types(KeyedBlock)
            | "Window" >> window_into(self.window, bounded=True)
        )
        return sums


def _by_block(element: KeyedBlock, timestamp: Given = beam.DoFn.TimestampParam) -> BlockPart:
    key, block = element
    return (key, timestamp.micros // 1000), block


def _at_block(element: BlockPart) -> WindowedValue:
    (key, origin), block = element
    return at_time(origin, (key, block))


@beam.typehints.with_input_types(PartialBlock)
@beam.typehints.with_output_types(PartialBlock)
class SumBlocks(beam.CombineFn):
    """Adds blocks."""

    def create_accumulator(self) -> PartialBlock:
        """Return the zero of the monoid."""
        return PartialBlock()

    def add_input(self, mutable_accumulator: PartialBlock, element: PartialBlock) -> PartialBlock:
        """Add one block."""
        return mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[PartialBlock]) -> PartialBlock:
        """Add many blocks."""
        return sum(accumulators, self.create_accumulator())

    def extract_output(self, accumulator: PartialBlock) -> PartialBlock:
        """Return the sum."""
        return accumulator

    def get_accumulator_coder(self) -> Coder:
        """Return our own coder, because accumulators must not be pickles."""
        return PartialBlockCoder()
