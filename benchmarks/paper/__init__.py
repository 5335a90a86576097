"""The results of the papers, reproduced: ``python -m benchmarks.paper``."""
