"""docs/export.md: its table of columns is that of the files and of BigQuery, with the types that BigQuery gives."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.docs.test_documents import ROOT, table
from tests.pipelines.results.test_export import SPEC, WITH_TAGS
from uldp.pipelines.results.export_files import write_rows

#: How BigQuery reads the types of Parquet, as its page on loading Parquet says: physical type, logical type.
OF_BIGQUERY = {
    ("INT64", "None"): "INTEGER",
    ("DOUBLE", "None"): "FLOAT",
    ("BOOLEAN", "None"): "BOOLEAN",
    ("BYTE_ARRAY", "String"): "STRING",
    ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=milliseconds)"): "TIMESTAMP",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> pq.ParquetFile:
    path: Path = tmp_path_factory.mktemp("export") / "f.parquet"
    write_rows(path, [(WITH_TAGS, SPEC)])
    return pq.ParquetFile(path)


def rows_of_columns(first: str) -> dict[str, list[str]]:
    """The rows of a table by each column that their first cell names."""
    return {name: row for names, row in table("export.md", first).items() for name in re.findall(r"\w+", names)}


def test_each_column_has_the_type_that_the_page_says(file: pq.ParquetFile) -> None:
    columns = [file.schema.column(i) for i in range(len(file.schema))]
    # Older versions of pyarrow say more of a time.
    logical = [re.sub(r", is_from.*", ")", str(each.logical_type)) for each in columns]
    types = [OF_BIGQUERY[each.physical_type, name] for each, name in zip(columns, logical, strict=True)]
    missing = sorted(set(file.schema.names) - rows_of_columns("Column").keys())
    assert not missing, f"add rows of {missing} to the table of columns in docs/export.md"
    assert dict(zip(file.schema.names, types, strict=True)) == {
        name: kind for name, (kind, _) in rows_of_columns("Column").items()
    }


def test_the_table_of_bigquery_has_the_columns_of_the_page() -> None:
    said = rows_of_columns("Further column") | rows_of_columns("Column")
    shipped = json.loads((ROOT / "deploy" / "bigquery" / "estimate_panes.json").read_text(encoding="utf-8"))
    assert {each["name"]: [each["type"], each["description"]] for each in shipped} == {
        name: [kind, plain(meaning)] for name, (kind, meaning) in said.items()
    }


def plain(cell: str) -> str:
    """The sentences of a cell without marks of Markdown."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell.replace("`", ""))
    return f"{text[0].upper()}{text[1:]}."
