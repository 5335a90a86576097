"""Connectors and sinks: archives, the local stream, Kafka, Pub/Sub, files of results, BigQuery."""
