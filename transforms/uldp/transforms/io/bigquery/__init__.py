"""BigQuery as a sink: the table of rows of estimates, and the endpoint that inserts rows."""
