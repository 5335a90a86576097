"""A column of a Hadamard matrix."""
