"""Where a reader of Kafka stands, as bytes; and readers that go on from there."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.kafka import LONGEST, NOW, TOPIC, Broker, drain, reader_of
from uldp.transforms.coders import StateLayoutError
from uldp.transforms.io.kafka.checkpoint import KafkaMark, KafkaMarkCoder, Position
from uldp.transforms.io.kafka.source import KafkaSource


@given(
    st.dictionaries(st.integers(0, 2**31 - 1), st.builds(Position, *[st.integers(-1, LONGEST)] * 5), max_size=20),
    st.integers(-1, LONGEST),
)
def test_marks_round_trip(positions: dict[int, Position], known_until: int) -> None:
    mark = KafkaMark(positions, TOPIC, known_until)
    coder = KafkaSource(TOPIC).get_checkpoint_mark_coder()
    assert coder.decode(coder.encode(mark)) == mark
    backwards = KafkaMark(dict(reversed(positions.items())), TOPIC, known_until)
    assert coder.encode(backwards) == coder.encode(mark)
    assert coder.is_deterministic()


def test_the_layout_of_marks_is_this() -> None:
    mark = KafkaMark({1: Position(2, 3, 4, 5, 6)}, TOPIC, 7)
    numbers = [f"{n:02x}" + "00" * 7 for n in (7, 2, 3, 4, 5, 6)]
    assert KafkaMarkCoder(TOPIC).encode(mark).hex() == "02" + numbers[0] + "01000000" + "".join(numbers[1:])


@pytest.mark.parametrize("encoded", [b"", b"\x01", b"\x00" * 53])
def test_marks_of_another_layout_are_refused(encoded: bytes) -> None:
    with pytest.raises(
        StateLayoutError, match=r"^another version .* Kafka checkpoint mark: .*, expected 02; .*runbook"
    ):
        KafkaMarkCoder(TOPIC).decode(encoded)


@pytest.mark.parametrize("size", [1, 8, 10, 52, 54])
def test_marks_that_were_cut_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=rf"^not a Kafka checkpoint mark: {size} bytes$"):
        KafkaMarkCoder(TOPIC).decode(b"\x02" + bytes(size - 1))


@pytest.mark.parametrize("group", [None, "dashboard"])
def test_a_final_mark_is_told_to_the_group(broker: Broker, group: str | None, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("" if group is None else f"group.id={group}", encoding="utf-8")
    broker.partitions, topic = {0: [NOW] * 3, 1: []}, replace(TOPIC, config=str(config))
    reader = reader_of(KafkaSource(topic))
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert broker.committed == []
    drain(reader)
    reader.close()
    reader.get_checkpoint_mark().finalize_checkpoint()
    assert broker.committed == ([] if group is None else [(0, 3), (1, 0)])
    assert {consumer.settings["group.id"] for consumer in broker.consumers} == {group or "uldp-stream"}
