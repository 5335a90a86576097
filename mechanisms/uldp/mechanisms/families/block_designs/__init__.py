"""A block of a symmetric design, or a value that is not sensitive."""
