"""DuckDB as a sink: a file of rows of estimates."""
