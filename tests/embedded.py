"""``Aggregate`` in a pipeline of others: what it is sent, their windows and triggers, and what comes out of it."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream as ScriptedStream
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows, TimestampedValue

from tests import build
from tests.build import HOUR, MINUTE, START
from uldp.schemas.estimate import Estimate
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.aggregate import Aggregate
from uldp.transforms.coders import MessageCoder

RR = {"domain": {"size": 4}, "mechanism": {"name": "rr", "epsilon": 2.0}}
FIXED = build.spec(collection="fixed", **RR)
SLIDING = build.spec(collection="sliding", **RR, window={"size": "1h", "period": "30m"})
#: Twenty reports to count and a copy of the first, of each collection; bytes that are no report; a report of long ago.
SENT = [
    *(
        build.message(build.report(number, number % 4, START + number * MINUTE, spec.key), START + minute * MINUTE)
        for spec in (FIXED, SLIDING)
        for minute, number in enumerate((*range(20), 0))
    ),
    Message(b"no report", START + 20 * MINUTE),
    build.message(build.report(99, 0, START - 2 * HOUR, FIXED.key), START + 20 * MINUTE),
]
COUNTED = {"fixed 21 = 20 + 1 + 0": 1, "sliding 21 = 20 + 1 + 0": 2, "estimate": 3, "rejected": 1}
#: The report of long ago has a window of its own in an archive, and is late in a stream.
OF_AN_ARCHIVE = COUNTED | {"fixed 1 = 1 + 0 + 0": 1, "estimate": 4}
OF_A_STREAM = COUNTED | {"fixed 1 = 0 + 0 + 1": 1, "late": 1}

EARLY = trigger.AfterWatermark(early=trigger.AfterCount(1), late=trigger.AfterCount(1))
WINDOWS: dict[str, Callable[[], beam.WindowInto]] = {
    "fixed": lambda: beam.WindowInto(FixedWindows(7)),
    "sliding": lambda: beam.WindowInto(SlidingWindows(600, 60)),
    "sessions": lambda: beam.WindowInto(Sessions(300)),
    "discarding": lambda: beam.WindowInto(
        GlobalWindows(),
        trigger=trigger.Repeatedly(trigger.AfterCount(1000)),
        accumulation_mode=trigger.AccumulationMode.DISCARDING,
    ),
    "accumulating": lambda: beam.WindowInto(
        SlidingWindows(600, 300),
        trigger=EARLY,
        accumulation_mode=trigger.AccumulationMode.ACCUMULATING,
        allowed_lateness=60,
    ),
}


def at(message: Message) -> Any:
    return TimestampedValue(message, message.publish_time / 1000)


def archive() -> Any:
    return beam.Create(SENT) | beam.Map(at)


def stream() -> Any:
    events = ScriptedStream(coder=MessageCoder()).with_output_types(Message).advance_watermark_to(START / 1000 - 1)
    for message in sorted(SENT, key=lambda message: message.publish_time):
        events = events.add_elements([at(message)])
    return events.advance_watermark_to_infinity()


def note_outputs(messages: Any, out: Path, label: str = "Aggregate") -> None:
    """Aggregate messages, and write a line for each element of each output, by steps with annotations of their own."""

    def note(line: str) -> None:
        with out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def of_counts(pane: Statistic) -> None:
        each = pane.accounting
        note(f"{pane.collection} {each.received} = {each.counted} + {each.duplicate} + {each.late}")

    def of_estimates(estimate: Estimate) -> None:
        note("estimate")

    def of_late(message: Message) -> None:
        note("late")

    def of_rejected(record: Rejected) -> None:
        note("rejected")

    aggregated = messages | label >> Aggregate([FIXED, SLIDING])
    _ = aggregated.counts | f"{label}Counts" >> beam.Map(of_counts)
    _ = aggregated.estimates | f"{label}Estimates" >> beam.Map(of_estimates)
    _ = aggregated.late | f"{label}Late" >> beam.Map(of_late)
    _ = aggregated.rejected | f"{label}Rejected" >> beam.Map(of_rejected)


def noted(out: Path) -> Counter[str]:
    """Count the lines that ``note_outputs`` wrote."""
    return Counter(out.read_text(encoding="utf-8").splitlines())


def outputs(runner: str, *options: str, windows: beam.WindowInto | None = None, out: Path) -> Counter[str]:
    """Return how often each line comes of an archive on one runner, or of a stream on the other."""
    streaming = runner == "BundleBasedDirectRunner"
    arguments = [*options, *(["--streaming"] if streaming else [])]
    with beam.Pipeline(runner, options=PipelineOptions(arguments)) as pipeline:
        messages = pipeline | (stream() if streaming else archive())
        if windows is not None:
            messages |= "Theirs" >> windows
        note_outputs(messages, out)
    return noted(out)


#: Three that every runner has: each of them a branch of one pipeline.
ALIKE = ("fixed", "sliding", "sessions")


def outputs_of_branches(folder: Path, *options: str) -> dict[str, Counter[str]]:
    """Aggregate an archive behind three windows in one pipeline; returns how often each line comes of each."""
    with beam.Pipeline(options=PipelineOptions([*options])) as pipeline:
        messages = pipeline | archive()
        for name in ALIKE:
            note_outputs(messages | f"Window-{name}" >> WINDOWS[name](), folder / name, f"Aggregate-{name}")
    return {name: noted(folder / name) for name in ALIKE}
