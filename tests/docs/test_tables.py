"""The tables of pages have the rows that the folders of mechanisms have."""

import pytest

from tests.docs.tables import COMMAND, PAGES, TABLE, rows_of_files, written

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PAGES}


@pytest.mark.parametrize("page", TEXTS)
def test_a_page_has_the_rows_of_the_folders(page: str) -> None:
    lines = zip(TEXTS[page].splitlines(), written(TEXTS[page]).splitlines(), strict=False)
    differs = next((line for line in lines if line[0] != line[1]), None)
    assert written(TEXTS[page]) == TEXTS[page], f"{COMMAND} writes the tables of docs/{page} anew: {differs}"


def test_each_table_of_a_folder_is_on_a_page_with_as_many_columns() -> None:
    on_pages = {
        found[1]: found[2].splitlines()[-1].count("|") - 1 for text in TEXTS.values() for found in TABLE.finditer(text)
    }
    of_rows = {table: {len(row) for row in rows} for table, rows in rows_of_files().items()}
    assert of_rows == {table: {columns} for table, columns in on_pages.items()}
