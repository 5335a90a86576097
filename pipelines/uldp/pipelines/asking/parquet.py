"""Answers as a Parquet file, which needs pyarrow, an extra; it is imported at its first use."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from uldp.mechanisms.questions.answer import About, Row
from uldp.pipelines.aside import written_aside
from uldp.pipelines.results.export_files import check_target
from uldp.schemas.errors import RequestError
from uldp.schemas.specs.mistakes import plain, printable


def check_parquet(target: Path) -> None:
    """Raise RequestError if answers cannot be written to a file of this name."""
    if target.suffix.lower() != ".parquet":
        raise RequestError(f"{plain(str(target))}: answers are written to a file that ends in .parquet; or use --json")
    check_target(target)


def write_answers(target: Path, answers: Sequence[Row]) -> None:
    """Write answers as rows, and replace an older file; OSError if the operating system refuses to write the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = {"start", "end"}
    rows = [
        {name: printable(value) if isinstance(value, str) else value for name, value in asdict(answer).items()}
        | {"flags": ", ".join(answer.flags) or None, "versions": ", ".join(map(str, answer.versions))}
        for answer in answers
    ]
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    fields = []
    for name, annotation in (About.__annotations__ | Row.__annotations__).items():
        plain_type = str(getattr(annotation, "__name__", annotation)).split(" | ")[0]
        of_type = pa.timestamp("ms", "UTC") if name in times else types.get(plain_type, pa.string())
        fields.append(pa.field(name, of_type))
    with written_aside(target) as path:
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), path)
