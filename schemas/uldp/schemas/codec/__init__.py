"""Reports and messages as columns and bytes, thousands at a time, each held to fastavro by its tests."""
