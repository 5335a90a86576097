"""BigQuery as a sink: rows of estimates, the table, the transform that inserts rows, and the endpoint."""
