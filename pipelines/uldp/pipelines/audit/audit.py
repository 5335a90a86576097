"""Count the messages of a source again, and name what is lost, double or damaged in the results of its job."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path

from uldp.pipelines.audit.compare import Compared, Place, compare, compare_sinks, explained, lacking_text
from uldp.pipelines.audit.found import Found
from uldp.pipelines.audit.reading import Reading, given_up_text, untaken
from uldp.pipelines.audit.recount import Recount, Tally
from uldp.pipelines.audit.source import Part, Source, StreamSource, TopicSource, source_of
from uldp.pipelines.results.files import ResultsError
from uldp.pipelines.results.newest import total_accounting
from uldp.pipelines.results.prune import pruned_before
from uldp.pipelines.results.records import left_out_line
from uldp.pipelines.results.selection import window_name
from uldp.pipelines.results.signed import Signed
from uldp.pipelines.results.text import number_of
from uldp.schemas.codec.packed import PackedMessages
from uldp.schemas.pane import Accounting
from uldp.schemas.reasons import Reason
from uldp.schemas.records import iso
from uldp.transforms.io.endpoints import Endpoint
from uldp.transforms.io.local.given_up import GivenUp
from uldp.transforms.io.local.journal import JOURNAL, GivenUpTaken, begins_with
from uldp.transforms.io.local.resume_point import RESUME, ResumePoint

#: Messages and bytes to decode at once.
_MESSAGES, _BYTES = 1 << 14, 8 << 20
#: Lines of one kind to write out.
MOST_LINES = 20


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit."""

    messages: int  # number of messages in the source that the job has read, or should have
    reports: int  # number of their reports
    faults: Sequence[str]  # lines that name what is lost, double or damaged
    notes: Sequence[str]  # lines that name what is not complete yet, or cannot be compared any more


def audit(endpoint: Endpoint, out: Path, *, private: Path | None = None, places: Sequence[Endpoint] = ()) -> Audit:
    """Count the messages of a job's source, or of a copy of it, again, and compare with its results ``out``.

    Of ``places`` of estimates, those on the network are asked only if named here. ValueError if the source cannot be
    read at all, or ``out`` holds no results.
    """
    return _Audit(source_of(endpoint), out, private or out, places).run()


@dataclass
class _Audit:
    source: Source
    out: Path
    private: Path
    places: Sequence[Endpoint]
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    incomparable: bool = False

    def run(self) -> Audit:
        self.signed = self._read_journal()
        self.found = Found.read(self.out, self.private, self.signed, self._damaged)
        self.pruned = pruned_before(self.private)
        for kind in ("late", "rejected"):
            for error in self.signed.lost_files(self.private / kind, self.pruned):
                self._damaged(error)
        self.left_out: frozenset[str] = frozenset()
        if isinstance(self.source, StreamSource):
            self._check_stream(self.source)
        counted, messages = self._recount()
        if isinstance(self.source, TopicSource):
            self.notes += self.source.notes
        compared = self._compare_windows(counted)
        self._name_lacking(compared, self._records(counted, compared), counted)
        if not (self.incomparable or counted.unsure):
            self._compare_copies(counted, compared)
        self._add(compared.others, "windows that are others")
        without = (
            f"{window_name(key)}: no estimate by {name} of the newest pane is there; restore its file"
            for key, name in self.found.lacking
        )
        self._add(without, "windows without an estimate")
        for name, n in sorted(Counter(name for _, name in self.found.unsure).items()):
            self.notes.append(
                f"{number_of(n, 'window')} without an estimate by {name}, but with others: restore their files, unless"
                " the spec named it later"
            )
        if compared.later:
            self.notes.append(
                f"{number_of(len(compared.later), 'window')} with reports that came when the window had closed, though"
                f" their times in the topic are earlier, the first {window_name(min(compared.later))}; backfill the"
                " topic into another directory to count them"
            )
        if compared.open:
            self.notes.append(
                f"{number_of(len(compared.open), 'window')} open, the first {window_name(min(compared.open))}"
            )
        if self.pruned:
            self.notes.append(
                f"late and rejected reports from before {iso(int(self.pruned) * 1000)} may be removed, so their"
                " numbers are not compared"
            )
        taken = self._given_up()
        self.notes += [given_up_text(each, "were") for each in taken]
        if (others := self.found.missing - sum(each.messages for each in taken)) > 0:
            self.notes.append(f"{number_of(others, 'message')} missing, which {self.out}/missing names")
        faults, notes = compare_sinks(self.found.job.sinks, self.places, self.out, self._damaged)
        self._add(faults, "places of rows")
        self.notes += notes
        if left_out := left_out_line(self.out, self._damaged):
            self.notes.append(left_out)
        return Audit(messages, counted.tally.received, tuple(dict.fromkeys(self.faults)), tuple(self.notes))

    def _given_up(self) -> Sequence[GivenUp | GivenUpTaken]:
        """Return the segments that the job took as given up."""
        if self._follows:
            return [each for _, each in sorted(self.signed.given_up.items())]
        if not isinstance(self.source, StreamSource):
            return []
        # A backfill names them by its records of missing messages.
        stream = self.source.stream
        return [each for each in stream.given_up if each.source(stream.id) in self.found.missing_sources]

    def _read_journal(self) -> Signed:
        """Return what the journal says, unless it is older than the resume point beside it."""
        try:
            point = ResumePoint.read(self.out / RESUME)
            if point is None or begins_with(self.out / JOURNAL, point.journal):
                return Signed.read(self.out)
        except ValueError as error:
            self._damaged(error)
        else:
            self.faults.append(f"{self.out / JOURNAL}: older than {RESUME}, or another one; restore it")
        return Signed()

    @property
    def _follows(self) -> bool:
        return self.found.job.command == "stream"

    def _damaged(self, error: ValueError) -> None:
        self.faults.append(str(error))

    def _unreadable(self, error: ValueError) -> None:
        self._damaged(error)
        self.incomparable = True

    def _add(self, lines: Iterable[str], others: str) -> None:
        """Add lines of one kind; ``others`` names what further ones would be about."""
        every = list(lines)
        self.faults += every[:MOST_LINES]
        if len(every) > MOST_LINES:
            self.faults.append(f"and {len(every) - MOST_LINES:,} more {others}")

    def _check_stream(self, source: StreamSource) -> None:
        """Compare the segments that are there with those that the job has read; ResultsError of another stream."""
        stream = source.stream
        if self._follows and stream.id != self.found.job.content:
            raise ResultsError(f"{stream.path}: not the stream that {self.found.job} has read; give that one")
        holes = [
            f"{stream.path / name}: missing; restore it, or, if it is lost, run uldp give-up" for name in source.holes()
        ]
        self._add(holes, "segments")
        self.incomparable = bool(holes)
        if self.signed.segments or self.signed.given_up:
            self._check_reading(source)

    def _check_reading(self, source: StreamSource) -> None:
        """Compare the segments that are there with those that the journal names."""
        stream, reading = source.stream, Reading.of(self.signed, source)
        removed = {name for name in reading.gone if source.removed(name)}
        self.left_out = reading.unread
        # Of segments that are not signed yet, some reports may be in panes.
        self.incomparable |= bool(reading.gone or reading.replaced or reading.unread)
        waiting = set() if source.closed else reading.waiting
        if waiting:
            self.notes.append(f"{number_of(len(waiting), 'segment')} not read yet, the first {min(waiting)}")
        if removed:
            self.notes.append(
                f"{number_of(len(removed), 'segment')} removed since the job has read them, so their reports are not"
                " compared"
            )
        read = (int(entry.segment) for entry in self.signed.segments.values())
        for each in untaken(stream, self.signed.given_up.values(), read):
            line = f"segments {each.first} to {each.last} are given up, and the job has not accounted them yet"
            if source.closed:
                self.faults.append(f"{stream.path}: {line}; start the job again")
            else:
                self.notes.append(line)
        for names, what in (
            (reading.unread - waiting, "the job has not read it, so its reports are in no pane; start the job again"),
            (reading.gone - removed, "missing, and the job has read it; restore it"),
            (reading.replaced, "not the segment that the job has read; restore that one"),
        ):
            self._add((f"{stream.path / name}: {what}" for name in sorted(names)), "segments")

    def _parts(self) -> Iterator[Part]:
        return (part for part in self.source.read(self._unreadable) if part.name not in self.left_out)

    def _recount(self, *, one_id_a_slice: bool = False) -> tuple[Recount, int]:
        """Count all messages; return their number too."""
        specs = self.found.specs.values()
        ids = {int(number): schema for number, schema in self.found.job.registry_ids.items()}
        recount = Recount(specs, judge_lateness=self._follows, one_id_a_slice=one_id_a_slice, registry_ids=ids)
        messages = 0
        for clock, batch in batches(self._parts()):
            recount.add(batch, clock)
            messages += len(batch)
        return recount, messages

    def _compare_windows(self, counted: Recount) -> Compared:
        unsure = Tally(slices=dict.fromkeys(counted.unsure, Accounting(received=1))).windows(counted.specs)
        whole = not self._follows or (self.source.closed and not self.left_out)
        fired_until = math.inf if whole else self.found.fired_until
        expected = counted.tally.windows(counted.specs)
        by_watermark = self._follows and isinstance(self.source, TopicSource)
        return compare(expected, self.found.panes, unsure=unsure, fired_until=fired_until, by_watermark=by_watermark)

    def _name_lacking(self, compared: Compared, records: Mapping[str, int], counted: Recount) -> None:
        """Name the parts that are not in the results, or else the windows and records that lack reports."""
        lacking: dict[Place, int] = dict(chain(compared.lacking.items(), records.items()))
        lacking = {place: n for place, n in lacking.items() if n > 0}
        if lacking and not self.signed.segments:
            lost = explained(lacking, list(self._places(counted)))
            self._add(map(str, lost), "parts of the source")
            for place in (place for each in lost for place in each.places):
                del lacking[place]
        of_windows, of_records = list[str](), list[str]()
        for place, n in lacking.items():
            if isinstance(place, str):
                of_records.append(f"{self.private}: {number_of(n, 'report')} {place} missing; restore the file")
            else:
                signed = self.signed.panes.get((*place, ""))
                of_windows.append(lacking_text(place, n, self.found.panes.get(place), signed))
        self._add(of_windows, "windows that lack reports")
        self._add(of_records, "kinds of records")
        if not self.incomparable:
            extra = (
                f"{window_name(key)}: {number_of(n, 'report')} of the newest pane are not in the source"
                for key, n in compared.extra.items()
            )
            self._add(extra, "windows with reports too many")
            double = (
                f"{self.private}: {number_of(-n, 'report')} {what} too many; remove the file that is double"
                for what, n in records.items()
                if n < 0
            )
            self._add(double, "kinds of records")

    def _places(self, counted: Recount) -> Iterator[tuple[str, Mapping[Place, int]]]:
        """Count each part again, and yield the number of its reports by place."""
        for name, parts in groupby(self._parts(), attrgetter("name")):
            tally = Tally()
            for _, batch in batches(parts):
                tally.add(counted.tally_of(batch))
            windows = {key: each.received for key, each in tally.windows(counted.specs).items()}
            yield name, dict(chain(windows.items(), records_of(tally).items()))

    def _records(self, counted: Recount, compared: Compared) -> dict[str, int]:
        """Return how many late and rejected reports are lacking, by kind; of open windows, they may not be written."""
        if counted.unsure:
            return {}
        wanted, there = records_of(counted.tally), {_LATE: self.found.late}
        there |= {_rejected(reason): n for reason, n in self.found.rejected.items()}
        less = {what: wanted.get(what, 0) - there.get(what, 0) for what in sorted(wanted.keys() | there.keys())}
        if compared.later:  # a record of each, and in sliding windows nobody knows how many these are
            less[_LATE] = max(less.get(_LATE, 0), 0)
        may_lack = compared.open or self.pruned
        # Which reports of a sender are over the limit depends on the order of reading: a job that was killed may have
        # rejected others before.
        over = _rejected(Reason.OVER_SENDER_LIMIT)
        return {what: n for what, n in less.items() if (what != over if n < 0 else not may_lack)}

    def _compare_copies(self, counted: Recount, compared: Compared) -> None:
        """Compare the number of counted reports with that of different ids, if all windows are whole."""
        if compared.lacking or compared.extra or compared.others or compared.open or compared.later:
            return
        most = counted
        for collection in sorted({spec.collection for spec in self.found.specs.values()}):
            panes = [pane for key, pane in self.found.panes.items() if key[0] == collection]
            versions = {pane.version for pane in panes}
            totals = [total_accounting(pane for pane in panes if pane.version == version) for version in versions]
            there = sum(total.counted for total in totals)
            if there > most.different[collection] and self._follows and most is counted:
                most, _ = self._recount(one_id_a_slice=True)
            if not counted.different[collection] <= there <= most.different[collection]:
                self.faults.append(
                    f"{collection}: {number_of(there, 'report')} counted, and the source has"
                    f" {number_of(counted.different[collection], 'different id')}; run the job again into another"
                    " directory"
                )


_LATE = "late"


def _rejected(reason: str) -> str:
    return f"rejected as {reason}"


def records_of(tally: Tally) -> dict[str, int]:
    """Return the number of late and of rejected reports, by kind."""
    late = sum(each.late for each in tally.slices.values())
    return ({_LATE: late} if late else {}) | {_rejected(reason): n for reason, n in tally.reasons.items()}


def batches(parts: Iterable[Part]) -> Iterator[tuple[str, PackedMessages]]:
    """Join parts that have one clock, in their order, into as many messages as a decoder handles at once."""
    held: list[PackedMessages] = []
    room, clock = _MESSAGES, ""
    for part in parts:
        if held and (part.clock != clock or room <= 0):
            yield clock, PackedMessages.join(held)
            held, room = [], _MESSAGES
        clock = part.clock
        held.append(part.messages)
        room -= max(len(part.messages), part.messages.nbytes * _MESSAGES // _BYTES)
    if held:
        yield clock, PackedMessages.join(held)
