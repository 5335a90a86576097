"""A late message that two files hold, and a file that was copied, count once."""

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from tests.build import HOUR, START, message, report, spec
from uldp.pipelines.audit.found import late_reports
from uldp.pipelines.jobs import local as jobs
from uldp.pipelines.results.files import refuse
from uldp.pipelines.results.folder import ResultsFolder
from uldp.pipelines.results.newest import newest
from uldp.schemas.records import Message
from uldp.schemas.rejected import Rejected
from uldp.schemas.statistic import Statistic
from uldp.transforms.io.archive import held_twice
from uldp.transforms.io.message_files import opened, packed_messages
from uldp.transforms.io.results.private import LateFiling, RejectedFiling
from uldp.transforms.io.results.write import write_private
from uldp.transforms.io.stored_files import StoredFile, left

SPEC = spec(window={"size": "1h"}, limits={"max_age": "3d"})
N = 60
#: Places as those of a segment, of a partition, and of a source that leaves numbers out.
PLACES = ["000000000003.avro:{0}", "orders/2/{0}", "topic/0/{1}"]


def late(place: str) -> list[Message]:
    bodies = (message(report(number, number % 5, START - HOUR), START + number) for number in range(N))
    return [body._replace(source=place.format(number, number * 7 + number // 9)) for number, body in enumerate(bodies)]


def write(out: Path, messages: list[Message], cuts: list[int]) -> None:
    """Write bundles that begin at each cut."""
    for first, end in pairwise(cuts):
        fn = write_private(str(out), LateFiling)
        fn.start_bundle()
        for each in messages[first:end]:
            fn.process(each)
        fn.finish_bundle()


def read(folder: Path) -> Counter[bytes]:
    paths = sorted(map(str, folder.glob("*.avro")))
    held = held_twice(paths)
    found: Counter[bytes] = Counter()
    for path in paths:
        with opened(path) as file:
            found.update(each.data for part in left(packed_messages(file, path), held.get(path, ())) for each in part)
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("again", [[0, 60], [0, 7, 8, 60], [10, 50], [0, 29, 31, 60]])
def test_late_messages_of_bundles_that_were_cut_in_two_ways_are_read_once(
    place: str, again: list[int], tmp_path: Path
) -> None:
    messages = late(place)
    write(tmp_path, messages, [0, 30, 60])
    write(tmp_path, messages, again)
    assert read(tmp_path / "late") == Counter(each.data for each in messages)
    assert sum(late_reports(tmp_path, {SPEC.key: SPEC}, refuse)) == N


def test_a_backfill_of_them_counts_no_duplicate_more(tmp_path: Path) -> None:
    messages = late(PLACES[0])
    write(tmp_path, messages, [0, 30, 60])
    write(tmp_path, messages, [0, 7, 60])
    first = next((tmp_path / "late").glob("*.avro"))
    shutil.copyfile(first, first.with_name(f"copy-of-{first.name}"))
    jobs.backfill([SPEC], tmp_path / "late", tmp_path / "out", jobs.pipeline_options([]))
    (pane,) = newest(ResultsFolder(tmp_path / "out", private=tmp_path / "out").statistics())
    assert isinstance(pane, Statistic)
    assert (pane.accounting.received, pane.accounting.counted, pane.accounting.duplicate) == (N, N, 0)


def test_other_data_at_the_same_place_stays(tmp_path: Path) -> None:
    one, other = (Message(data, START, source="s.avro:5") for data in (b"one", b"other"))
    write(tmp_path, [one], [0, 1])
    write(tmp_path, [other], [0, 1])
    assert read(tmp_path / "late") == Counter([b"one", b"other"])


def test_messages_without_a_number_stay(tmp_path: Path) -> None:
    messages = [Message(b"same", START + time, source=f"id-{time}x") for time in range(3)]
    write(tmp_path, messages, [0, 1, 2, 3])
    write(tmp_path, messages, [0, 3])
    assert read(tmp_path / "late") == Counter({b"same": 6})


@pytest.mark.parametrize("name", ["copy-of-{}", "0{}", "z{}"])
def test_a_copy_of_a_file_of_rejected_reports_is_not_read(name: str, tmp_path: Path) -> None:
    fn = write_private(str(tmp_path), RejectedFiling)
    fn.start_bundle()
    for number in range(5):
        place = f"nowhere{number}x" if number % 2 else f"s.avro:{number}"
        fn.process(Rejected("decode", "malformed", "", (b"x" * 40,), {}, (number,), place, 1, "0"))
    fn.finish_bundle()
    for path in [*(tmp_path / "rejected").glob("*.avro")]:
        shutil.copyfile(path, path.with_name(name.format(path.name)))
    assert sum(record.reports for record in ResultsFolder(tmp_path).rejected()) == 5


@pytest.mark.parametrize("places", [b"", b"!", b"AAAA", b"q1YqzkjMS1eyUkpUqgUA"])
def test_places_that_are_none_are_left_out_of_the_header(places: bytes) -> None:
    assert StoredFile.of({"uldp.file": b"a", "uldp.places": places}) == StoredFile("a")
    assert StoredFile.of({}) is None
