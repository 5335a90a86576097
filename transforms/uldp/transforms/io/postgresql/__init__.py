"""PostgreSQL as a sink: a table of rows of estimates."""
