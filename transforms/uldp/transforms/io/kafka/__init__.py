"""A topic of Kafka: its name, its consumers, the source, the checkpoint of a reader, and a producer."""
