"""The tables of pages are those of the folders of mechanisms; ``tests/test_pieces_of_a_mechanism.py`` has the rows."""

from tests.docs.tables import PAGES, TABLE, rows_of_files

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PAGES}


def test_each_table_of_a_folder_is_on_a_page_with_as_many_columns() -> None:
    on_pages = {
        found[1]: found[2].splitlines()[-1].count("|") - 1 for text in TEXTS.values() for found in TABLE.finditer(text)
    }
    of_rows = {table: {len(row) for row in rows} for table, rows in rows_of_files().items()}
    assert of_rows == {table: {columns} for table, columns in on_pages.items()}
