"""The journal of a local job: a line for each thing that was read or written, and a digest of all of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uldp.schemas.errors import DataError
from uldp.transforms.io.local.journal import (
    Entry,
    FileWritten,
    Journal,
    JournalEnd,
    PaneWritten,
    SegmentRead,
    begins_with,
    decode_entry,
    encode_entry,
    read_journal,
    segments_read,
)

ENTRIES: list[Entry] = [
    SegmentRead("000000000003", "00ff" * 8, 1234, 10),
    PaneWritten("check-ins", 1, -3_600_000, 0, "mle", 12, 3, False),
    PaneWritten("check-ins", 1, -3_600_000, 0, "", 12, 3, True),
    FileWritten(f"rejected/{'0f' * 16}.avro", 1_767_603_600, "0f" * 8),
]


def entries() -> st.SearchStrategy[Entry]:
    texts, numbers = st.text(), st.integers()
    return st.one_of(
        st.builds(SegmentRead, texts, texts, numbers, numbers),
        st.builds(PaneWritten, texts, numbers, numbers, numbers, texts, numbers, numbers, st.booleans()),
        st.builds(FileWritten, texts, numbers, texts),
    )


@given(entries())
def test_an_entry_is_a_line(entry: Entry) -> None:
    line = encode_entry(entry)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_entry(line) == entry


def test_entries_are_read_back_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for entry in ENTRIES:
        with Journal(path) as kept:
            kept.add(entry)
            kept.commit()
    assert list(read_journal(path)) == ENTRIES
    assert list(read_journal(tmp_path / "nowhere")) == []


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_line_that_is_torn_is_removed(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    path.write_bytes(b"".join(map(encode_entry, ENTRIES))[:-cut])
    assert list(read_journal(path)) == ENTRIES[:-1]
    with Journal(path) as kept:
        kept.add(ENTRIES[-1])
        kept.commit()
    assert list(read_journal(path)) == ENTRIES


def test_a_journal_knows_how_far_it_went(tmp_path: Path) -> None:
    path, ends = tmp_path / "j", []
    with Journal(path) as kept:
        for entry in ENTRIES:
            ends.append(kept.commit())
            kept.add(entry)
        ends.append(kept.commit())
    assert [end.size for end in ends] == [
        sum(len(encode_entry(entry)) for entry in ENTRIES[:count]) for count in range(5)
    ]
    assert [list(read_journal(path, end.size)) for end in ends] == [ENTRIES[:count] for count in range(5)]
    assert all(begins_with(path, end) for end in ends)
    assert not begins_with(path, JournalEnd(size=ends[2].size, digest=ends[3].digest))
    assert not begins_with(path, JournalEnd(size=ends[-1].size + 1, digest=ends[-1].digest))
    assert begins_with(tmp_path / "nowhere", ends[0])
    assert not begins_with(tmp_path / "nowhere", ends[1])
    with Journal(path) as again:
        assert again.commit() == ends[-1]
    with Journal(path, anew=True) as again:
        assert again.commit() == ends[0]


def test_segments_that_were_read_are_found_from_one_on(tmp_path: Path) -> None:
    read = [SegmentRead(f"{number:012d}", "00", number, 1) for number in (0, 1, 2, 1, 3)]
    with Journal(tmp_path / "j") as kept:
        for entry in [*read, *ENTRIES[1:]]:
            kept.add(entry)
        kept.commit()
    assert list(segments_read(tmp_path / "j", "000000000001.avro").values()) == [read[1], read[2], read[4]]


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b"[]\n",
        b'["segment"]\n',
        b'["segment","3","00",1,"10"]\n',
        b'["other",1]\n',
        b"\xff\n",
        b"[" * 3000 + b"\n",
        b'"' + b"x" * 5000 + b'"\n',
        b"1e400\n",
        b'[["a"]]\n',
    ],
)
def test_a_line_of_anything_else_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(encode_entry(ENTRIES[0]) + line + encode_entry(ENTRIES[1]))
    with pytest.raises(DataError, match=r"j: line 2 is none of a journal; restore the whole results"):
        list(read_journal(path))
