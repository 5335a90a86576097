"""Jobs: their sources and outputs, the identity of a results directory, how they run, and their progress lines."""
