"""Parquet as a sink: a folder of files of rows of estimates."""
