"""A set of values, or a block of a symmetric design."""
