"""A subscription of Pub/Sub: its name, its client, the source, and the checkpoint of a reader."""
