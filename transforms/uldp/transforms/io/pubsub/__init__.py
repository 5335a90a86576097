"""A subscription of Pub/Sub: its name, its settings, its client, the source, and the checkpoint of a reader."""
