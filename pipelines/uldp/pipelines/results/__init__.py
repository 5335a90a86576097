"""Results directories: read, select and check results, write them as text, and replay rejected reports."""
