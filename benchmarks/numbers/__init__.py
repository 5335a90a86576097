"""The law of the tests as tables: ``python -m benchmarks.numbers``."""
