"""The decoders: each reads the statistic of one kind of mechanism, and gives its tables."""
