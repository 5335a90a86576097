"""What a folder holds, as an error says it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from uldp.transforms.io.durable_files import container_bytes
from uldp.transforms.io.folders import Kind, kind_of, mismatch
from uldp.transforms.io.local.stream import LocalStream


def touch(path: Path, content: bytes = b"") -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_bytes(content)


def of(schema: str) -> bytes:
    return container_bytes(schema, [])


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (LocalStream.create, Kind.STREAM),
        (lambda path: touch(path / "job.json"), Kind.RESULTS),
        (lambda path: touch(path / "specs" / "c-v1" / "spec.yaml"), Kind.RESULTS),
        (lambda path: touch(path / "deep" / "1.avro", of("message")), Kind.MESSAGES),
        (lambda path: touch(path / "1.avro", of("rejected")), Kind.REJECTED),
        (lambda path: touch(path / "c-v1" / "w" / "1.avro", of("estimate")), Kind.ESTIMATES),
        (lambda path: touch(path, of("statistic")), Kind.COUNTS),
        (lambda path: touch(path / "1.avro", of("report")), Kind.OTHER),
        (lambda path: touch(path / "letter.txt"), Kind.OTHER),
        (lambda path: touch(path / "day.avro" / "1.avro", of("message")), Kind.MESSAGES),
        (lambda path: [touch(path / "letter.txt"), (path / "1.avro").symlink_to("nowhere")], Kind.OTHER),
        (lambda path: touch(path), Kind.OTHER),
        (lambda path: touch(path / ".lock"), Kind.EMPTY),
        (Path.mkdir, Kind.EMPTY),
    ],
)
def test_a_kind_is_known_by_what_is_there(make: Callable[[Path], object], kind: Kind, tmp_path: Path) -> None:
    make(tmp_path / "it")
    assert kind_of(tmp_path / "it") is kind


@pytest.mark.parametrize(
    ("path", "wanted", "said"),
    [
        ("st", Kind.REJECTED, "holds a local stream; give a directory that holds rejected reports"),
        ("out", Kind.REJECTED, "holds results; give a directory that holds rejected reports, such as out/rejected"),
        ("out/rejected", Kind.RESULTS, "holds rejected reports; give a directory that holds results, such as out"),
        ("all", Kind.STREAM, "holds rejected reports; give a directory that holds a local stream, such as all/st"),
        ("none", Kind.RESULTS, "no such file or directory; give a directory that holds results"),
    ],
)
def test_another_kind_is_named_with_a_folder_near_by(
    path: str, wanted: Kind, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    LocalStream.create(Path("st"))
    LocalStream.create(Path("all/st"))
    touch(Path("all/out/1.avro"), of("rejected"))
    touch(Path("out/job.json"))
    touch(Path("out/rejected/1.avro"), of("rejected"))
    assert mismatch(Path(path), wanted) == f"{path}: {said}"
